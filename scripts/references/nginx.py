"""docs/nginx.md: the directives in tables, in the order and the groups of their file."""

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from intop.config.directives import load_directives
from intop.domain.nginx.directive import Directive, Needs, page_of
from intop.domain.nginx.permitted import ALLOWED, BY_NAME, DENIED, PREFIX
from intop.domain.nginx.standing import Directives
from scripts.references.markdown import MADE, table
from scripts.references.parameters import rule

GROUP_OR_KEY = re.compile(r'^# --- (?P<group>.+)$|^key = "(?P<key>.+)"$', re.MULTILINE)
HEAD = ["key", "kind", "values", "unit", "default", "where nginx takes it", "needs"]
HEAD += ["effective by", "further in", "risk", "what it does", "interacts with", "document"]


def document(path: Path) -> str:
    """The whole document. Raises ConfigurationError when the catalogue is wrong."""
    directives = load_directives(path)
    groups = dict(_groups(path.read_text()))
    parts = ["# nginx's directives\n", MADE.format(source="`configs/nginx.toml`")]
    parts.append(_head(directives))
    for name, found in groupby(directives.by_key.values(), key=lambda d: groups[d.key]):
        parts += [f"## {name}\n", table(HEAD, map(_row, found))]
    parts += [
        "## What must hold between them\n",
        table(["", "why"], ([rule(c), c.why] for c in directives.constraints)),
        "## What is tuned only by its name\n",
        "Denied, unless the study allows it by its name:\n",
        table(["key", "why"], ([f"`{PREFIX}{name}`", why] for name, why in BY_NAME.items())),
        "## What is never tuned\n",
        _never(),
        table(["directives", "why"], ([f"`{name}`", why] for name, why in DENIED.items())),
    ]
    return "\n".join(parts)


def _head(directives: Directives) -> str:
    found = directives.by_key.values()
    lines = {(d.level, d.name, d.option or d.flag) for d in found}
    return f"""\
The catalogue has {len(found)} parameters of {len(lines)} directives and options. A study
with `tunes = ["kernel", "nginx"]` in `[study]` tunes them together with sysctls, one with
`tunes = ["nginx"]` alone. `intop apply --persist` carries out what it finds, `intop rollback`
undoes it, and `intop export --format nginx` writes it to be merged.

The verdict on a winner of both kinds has four sides: the default, the sysctls alone, the directives
alone, and both, measured in the same rounds. It says what each half is worth, and whether
together they are more or less than the product of both, with intervals.

- **key**: the level at which the value is set, the directive, and where a directive has several
  numbers, which one. `nginx:listen.` is an option at each TCP address of `http`, in the one
  `listen` that may have it; `nginx:upstream.` is set in each upstream.
- **values**: the range to search, or the choices.
- **default**: nginx's own, where the directive doesn't stand; in brackets that of older versions.
  `page` is the host's page size, `nofile` the limit of open files that nginx is started with. What
  follows others is twice the largest of them.
- **effective by**: what it takes to set it and to take it back: a reload of nginx, or a restart.
- **further in**: a value is set at the key's level. Where the directive also stands in a server or
  a location, `change` gives it the same value there; `keep` leaves these places to who wrote them,
  and intop names them.
- **document**: a page of nginx.org.

A change is a minimal edit of the files that nginx reads (`nginx -T`): a few characters where the
directive stands, a line where it doesn't. No directive comes to stand twice, and a value that
holds already changes nothing.
"""


def _never() -> str:
    allowed = ", ".join(f"`{pattern}`" for pattern in ALLOWED)
    return f"""\
Only these can be tuned: {allowed}.

Nothing else is, above all nothing that changes what is served, who may see it, or where it is
logged for audit. Both lists are code (`intop/domain/nginx/permitted.py`), so that no file can
change them. The reasons, by directive; where a broad pattern and the list above meet, the list
above holds:
"""


def _groups(text: str) -> Iterator[tuple[str, str]]:
    """Each key with the heading that it stands below."""
    group = ""
    for match in GROUP_OR_KEY.finditer(text):
        group = match["group"] or group
        if match["key"]:
            yield match["key"], group


def _row(directive: Directive) -> list[str]:
    parameter = directive.parameter
    anchor = parameter.document.partition("#")[2]
    note = f" ({parameter.note})" if parameter.note else ""
    return [
        f"`{directive.key}`",
        parameter.kind,
        _values(directive),
        parameter.unit,
        _default(directive),
        ", ".join(directive.contexts),
        _needs(directive),
        directive.effective,
        directive.inner if directive.level == "http" else "",
        parameter.risk,
        parameter.mechanism + note,
        "; ".join(f"`{key}`: {how}" for key, how in directive.interacts.items()),
        f"[{anchor}]({page_of(parameter.document)})",
    ]


def _values(directive: Directive) -> str:
    parameter = directive.parameter
    if not parameter.is_numeric:
        return ", ".join(parameter.choices)
    (only,) = parameter.components
    per_cpu = f", at most {directive.per_cpu} for each processor" if directive.per_cpu else ""
    own = " (own value or more)" if directive.own_floor else ""
    return f"{only.low:,} to {only.high:,}{own}, {parameter.scale}{per_cpu}"


def _default(directive: Directive) -> str:
    if directive.follows:
        return " and ".join(f"follows `{key}`" for key in directive.follows)
    older = "".join(
        f" (before {'.'.join(map(str, b.version))}: {b.default})" for b in directive.before
    )
    return directive.default + older


def _needs(directive: Directive) -> str:
    found = _lacking(directive.needs)
    if directive.beside:
        found.append(f"`{directive.beside}=`")
    if not directive.inserted:
        found.append("a log to a file")
    for choice, needs in directive.choice_needs.items():
        found.append(f"{choice}: {', '.join(_lacking(needs))}")
    return "; ".join(found)


def _lacking(needs: Needs) -> list[str]:
    """What is needed, each in a few words."""
    found = [] if needs.since is None else [f"nginx {'.'.join(map(str, needs.since))}"]
    found += [f"Linux {needs.kernel}"] if needs.kernel else []
    found += [f"`{needs.build}`"] if needs.build else []
    found += [{"tls": "TLS", "http2": "HTTP/2"}[needs.inside]] if needs.inside else []
    return found + ([f"`{needs.on}`"] if needs.on else [])
