"""A deployment as an Ansible playbook that needs nothing beside ansible-core.

It reads each key before it writes, so a run without a difference changes nothing, and it keeps on
the host what was set before, so that it can be undone.
"""

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from string import Template

from intop.deploy.export.nginx import NginxText
from intop.domain.cluster import MACHINES
from intop.domain.deployment import Deployment
from intop.domain.nginx.conf import Place
from intop.domain.nginx.directive import Effective
from intop.domain.parameter import PARTNERS
from intop.domain.sysctl_file import NAME, OURS, comment, plain_values, provenance, sysctl_file
from intop.errors import UsageError
from intop.version import __version__

HERE = Path(__file__).parent

BLOCKS = {(): "main", ("events",): "events", ("http",): "http"}
"""Blocks that stand in nginx.conf itself, by the names around what stands in them."""
UNNAMED = "Say which hosts are to be changed: -e intop_hosts=PATTERN, a host, a group or a pattern"
"""Ansible's message where nobody has: an inventory may have hosts that are no load balancers."""


class _Play(Template):
    """A play with places such as @name, since Ansible and its patterns need $ and {{."""

    delimiter = "@"


def playbook(
    deployment: Deployment,
    *,
    written_at: str,
    nginx: NginxText | None = None,
    takes_it_by: Effective = "reload",
) -> str:
    """Return the playbook, YAML: a play for the kernel, and one for `nginx`, if there is any.

    `takes_it_by` is what makes nginx take it. JSON strings are YAML, and the file is a literal
    block, in which nothing has a meaning; !unsafe keeps Ansible from looking for templates in it.
    Raises UsageError for what sysctl would read otherwise, and for what stands in
    other files than nginx.conf.
    """
    text = comment(
        f"{OURS} {__version__} at {written_at}.",
        *provenance(deployment),
        "Hosts are named by -e intop_hosts=PATTERN, and without that nothing runs. To try: "
        "ansible-playbook --check --diff. To undo: -e intop_state=absent.",
    )
    text += "---"
    if deployment.sysctls:
        text += _kernel_play(deployment, written_at=written_at)
    if nginx is not None:
        text += _nginx_play(deployment, nginx, takes_it_by)
    return text


def _kernel_play(deployment: Deployment, *, written_at: str) -> str:
    values = "\n".join(
        f"{json.dumps(key)}: {json.dumps(value)}" for key, value in plain_values(deployment).items()
    )
    return _play(
        "ansible_kernel.yml",
        deployment,
        name=json.dumps(f"Set the sysctls that intop found for {deployment.arch}"),
        path=f"/etc/sysctl.d/{NAME}",
        partners=json.dumps(PARTNERS),
        values=textwrap.indent(values, " " * 6),
        file=textwrap.indent(sysctl_file(deployment, written_at=written_at).rstrip(), " " * 6),
    )


def _nginx_play(deployment: Deployment, text: NginxText, verb: Effective) -> str:
    """Return the play that sets directives in nginx.conf; nginx checks them before they stay.

    `verb` is what systemd is to do with nginx. Raises UsageError for what stands in other files
    than nginx.conf, since which ones those are differs from host to host, and for what may stand
    there several times. The play itself refuses an nginx.conf in which a directive stands in
    several blocks.
    """
    return _play(
        "ansible_nginx.yml",
        deployment,
        name=json.dumps("Set the directives of nginx that intop found"),
        verb=verb,
        lines="\n".join(f"      - {json.dumps(line)}" for line in _lines(text)),
    )


def _play(template: str, deployment: Deployment, **places: str) -> str:
    """Return a play, with the hosts that it is for, to stand behind another."""
    play = _Play((HERE / template).read_text(encoding="utf-8"))
    machines = json.dumps(MACHINES[deployment.arch])
    return "\n" + play.substitute(machines=machines, unnamed=UNNAMED, **places)


def _lines(text: NginxText) -> Iterator[dict[str, str]]:
    if text.unwritten:
        raise _unwritable(", ".join(text.unwritten))
    for place in text.conf.places:
        words = place.statement.words
        if place.statement.name in ("events", "http"):
            continue
        if place.context not in BLOCKS or place.statement.name in text.companions:
            raise _unwritable(" ".join(word.text for word in words))
        yield _line(place)


def _line(place: Place) -> dict[str, str]:
    block = BLOCKS[place.context]
    indent = "    " * len(place.context)
    words = [word.text for word in place.statement.words]
    return {
        "name": words[0],
        "block": " ".join(place.context),
        "regexp": rf"^\s*{words[0]}\s",
        "line": f"{indent}{' '.join(words)};",
        # What stands before all blocks is of the main context.
        "insertafter": "BOF" if block == "main" else rf"^\s*{block}\s*\{{",
    }


def _unwritable(what: str) -> UsageError:
    return UsageError(
        f"a playbook can't set {what}: it stands in files that differ from host to host, or beside "
        "others of its name. Use intop apply, or merge what --format nginx writes"
    )
