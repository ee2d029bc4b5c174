"""docs/parameters.md: the catalogue in tables, in the order and the groups of its file."""

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

from intop.config.catalogue import Catalogue, load_catalogue
from intop.domain.constraints import Capacity, Constraint, Exclusion, Order
from intop.domain.parameter import ALLOWED, DENIED, Component, Parameter
from intop.domain.presence import Presence
from scripts.references.markdown import MADE, table

GROUP_OR_KEY = re.compile(r'^# --- (?P<group>.+)$|^key = "(?P<key>.+)"$', re.MULTILINE)
KERNEL = "https://github.com/torvalds/linux/blob/v6.18/"
HEAD = ["key", "kind", "values", "unit", "scope", "risk", "kernels", "what it does", "document"]


def document(path: Path) -> str:
    """The whole document. Raises ConfigurationError when the catalogue is wrong."""
    catalogue = load_catalogue(path)
    groups = dict(_groups(path.read_text()))
    parts = ["# Parameters\n", MADE.format(source="`configs/parameters.toml`"), _head(catalogue)]
    for name, found in groupby(catalogue.parameters, key=lambda p: groups[p.key]):
        parts += [f"## {name}\n", table(HEAD, map(_row, found))]
    parts += [
        "## What must hold between them\n",
        table(["", "why"], ([rule(c), c.why] for c in catalogue.constraints)),
        "## What is never tuned\n",
        _never(),
        table(["keys", "why"], ([f"`{key}`", why] for key, why in DENIED.items())),
        "## Keys that published sets of values still name\n",
        "And keys that a trial can't show, so that they are not offered.\n",
        table(["key", ""], ([f"`{key}`", why] for key, why in catalogue.former.items())),
    ]
    return "\n".join(parts)


def _head(catalogue: Catalogue) -> str:
    found = catalogue.parameters
    of_namespaces = sum(p.scope == "namespace" for p in found)
    risks = ", ".join(
        f"{sum(p.risk == risk for p in found)} {risk}" for risk in ("low", "medium", "high")
    )
    return f"""\
The catalogue has {len(found)} parameters: {of_namespaces} belong to a network namespace,
{len(found) - of_namespaces} to the whole machine. By risk: {risks}; `max_risk` in `[study]` sets
the highest risk to tune (the default is medium). `intop doctor` lists the parameters that your
hosts offer, and why they do not offer the others.

- **values**: the range to search, on a linear or a logarithmic scale. If a share of the host's
  memory is given and is smaller than the upper end, it is the upper end. **Bold** ends are hard
  bounds, and so is a share of the memory: beyond them a value can hurt the host, so baselines and
  plans keep to them, too. With "own value or more" so is the host's own value.
- **scope**: in a recent kernel (6.x). A host that is only a namespace does not offer keys of the
  whole machine.
- **kernels**: mainline versions, as far as known. They explain why a key is missing.
  Distributions add keys to older kernels.
- **document**: a file in the kernel's source.
"""


def _never() -> str:
    allowed = ", ".join(f"`{pattern}`" for pattern in ALLOWED)
    return f"""\
Only keys of these patterns can be tuned: {allowed}.

Of them, none of the following, each with its reason. Both lists are code
(`intop/domain/parameter.py`), so that no file can change them: no catalogue, baseline, plan or
stored campaign.
"""


def _groups(text: str) -> Iterator[tuple[str, str]]:
    """Each key with the heading that it stands below."""
    group = ""
    for match in GROUP_OR_KEY.finditer(text):
        group = match["group"] or group
        if match["key"] and not group.startswith(("Constraints", "Keys ")):
            yield match["key"], group


def _row(parameter: Parameter) -> list[str]:
    document = parameter.document
    told = parameter.mechanism + (f" ({parameter.note})" if parameter.note else "")
    if parameter.effect:
        told += f". Writing it at once: {parameter.effect}"
    return [
        f"`{parameter.key}`",
        parameter.kind,
        _values(parameter),
        parameter.unit,
        parameter.scope,
        parameter.risk,
        _kernels(parameter.presence),
        told,
        f"[{Path(document).name}]({KERNEL}{document})",
    ]


def _values(parameter: Parameter) -> str:
    if not parameter.is_numeric:
        return ", ".join(parameter.choices)
    ranges = [f"{c.name} {_ends(c)}".strip() for c in parameter.components]
    part = parameter.ram_fraction
    memory = f", at most {part:.2g} of the memory" if part is not None else ""
    return f"{'; '.join(ranges)}, {parameter.scale}{memory}"


def _ends(component: Component) -> str:
    low, high = f"{component.low:,}", f"{component.high:,}"
    if component.floor is not None:
        low = f"**{low}**"
    if component.ceiling is not None:
        high = f"**{high}**"
    return f"{low} to {high}{' (own value or more)' if component.own_floor else ''}"


def _kernels(presence: Presence) -> str:
    told: Mapping[str, str] = {
        "since {}": presence.since,
        "up to {}": presence.until,
        "now {}": presence.moved_to,
        "module {}": presence.module,
        "with {}": presence.option,
        "by namespace since {}": presence.namespaced_since,
        "without effect since {}": presence.inert_since,
    }
    return ", ".join(words.format(what) for words, what in told.items() if what)


def rule(constraint: Constraint) -> str:
    """A constraint in signs."""
    if isinstance(constraint, Order):
        by = f", by {constraint.gap:,} at least" if constraint.gap else ""
        return " ≤ ".join(f"`{name}`" for name in constraint.columns) + by
    if isinstance(constraint, Exclusion):
        return f"one of {', '.join(f'`{key}`' for key in constraint.keys)}"
    if isinstance(constraint, Capacity):
        return f"`{constraint.held}` ≤ (`{constraint.count}` - 1) · `{constraint.size}`"
    values, to_be = " or ".join(constraint.values), " or ".join(constraint.to_be)
    return f"`{constraint.key}` = {values} needs `{constraint.needs}` = {to_be}"
