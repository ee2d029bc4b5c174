"""The page of nginx's module `stub_status`: whether it is at its place."""

import re
import secrets
import shlex
from collections.abc import Sequence
from urllib.parse import urlsplit

from intop.domain.cluster import Cluster
from intop.errors import CommandError
from intop.hosts.host import Host
from intop.hosts.kernel_counters import parse_stub_status
from intop.hosts.lasting import MARK_BYTES
from intop.hosts.reader import READER, Wanted, status_answer

SHOWN = 60
"""Characters of another text that are shown."""


def warnings(host: Host, cluster: Cluster) -> list[str]:
    """Return why the page that the study names has no counters of nginx, and the next step.

    The page is asked for as in each measurement: by the reader, on the load balancer, within half a
    second. Raises CommandError where the host can't be asked.
    """
    url = cluster.stub_status
    if not url or cluster.emulation:
        return []
    mark = secrets.token_hex(MARK_BYTES)
    request = f"{mark}\n{Wanted(stub_status=url).request}"
    ended = host.run(f"bash -c {shlex.quote(READER)}", stdin=request)
    try:
        answer = status_answer(ended.stdout, mark)
    except (KeyError, ValueError) as error:
        raise CommandError(
            host.address.name, f"its counters can't be read by bash ({error}): {ended.message}"
        ) from error
    if parse_stub_status(answer):
        return []
    page = urlsplit(url)
    step = (
        f"give a server of nginx that listens on {page.hostname}:{page.port or 80} the block "
        f"location = {page.path} {{ stub_status; allow 127.0.0.1; deny all; }}, or correct the URL"
    )
    lack = f"{_behaviour(answer)}, so trials will lack nginx's own counters"
    return [f"{host.address.name}: stub_status: {url} {lack}: {step}"]


def _behaviour(answer: Sequence[str]) -> str:
    """Return the behaviour of a server in place of the page."""
    head, _, body = "\n".join(answer).strip("\n").partition("\n\n")
    status = re.match(r"HTTP/[0-9.]+ ([0-9]{3}[^\n]*)", head)
    if not head:
        return "does not answer within 0.5 s"
    if status is None:
        return f"answers with something else than HTTP ({head[:SHOWN]!r})"
    if not status[1].startswith("200"):
        return f"answers {status[1][:SHOWN]}"
    text = f" ({body[:SHOWN]!r})" if body else ""
    return f"answers with another text than stub_status has{text}"
