"""A deployment's directives as nginx reads them: a file to merge, made by the edits of an apply."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from intop.domain.deployment import Deployment
from intop.domain.nginx.conf import Conf
from intop.domain.nginx.directive import Directive, Effective, Level, NginxFacts
from intop.domain.nginx.edits import changed
from intop.domain.nginx.standing import Directives, current
from intop.domain.sysctl_file import OURS, comment, measured, provenance
from intop.errors import UsageError
from intop.version import __version__

PATH = "/nginx.conf"
"""Path of the file that the directives are written into, which is no file of a host."""


@dataclass(frozen=True, kw_only=True)
class NginxText:
    """Directives as nginx reads them."""

    conf: Conf
    """A file with nothing else in it but the blocks that they stand in."""
    unwritten: tuple[str, ...]
    """Keys that only change what stands in a host's own files."""
    companions: frozenset[str] = frozenset()
    """Names of directives that stand there for the sake of another one."""

    @property
    def text(self) -> str:
        """The text of the file."""
        return self.conf.sources[PATH].text


def nginx_text(values: Mapping[str, str], directives: Directives, facts: NginxFacts) -> NginxText:
    """Write these values of directives, by key, for an nginx that is as `facts` say.

    Raises UsageError for a key or a value that the catalogue of directives doesn't have.
    """
    if unknown := sorted(values.keys() - directives.by_key.keys()):
        raise UsageError(f"this intop doesn't know the directives {', '.join(unknown)}: tune again")
    conf = Conf.of(PATH, {PATH: _blocks(directives.by_key[key] for key in values)})
    try:
        edited = conf.edited(changed(directives, conf, values, facts).texts)
    except ValueError as error:
        raise UsageError(f"{error} in this intop: tune again") from error
    held = current(directives, edited, facts)
    companions = (directives.by_key[key].companion for key in values)
    return NginxText(
        conf=edited,
        unwritten=tuple(key for key, value in values.items() if held[key] != value),
        companions=frozenset(companion.name for companion in companions if companion is not None),
    )


def nginx_conf(
    deployment: Deployment, directives: Directives, facts: NginxFacts, *, written_at: str
) -> str:
    """The text of the export. Raises UsageError where the deployment changes no directive."""
    if not deployment.directives:
        raise UsageError(f"{deployment.title} changes no directive of nginx: --format sysctl")
    written = nginx_text(deployment.directives, directives, facts)
    head = comment(
        f"{OURS} {__version__} at {written_at}.",
        *provenance(deployment),
        *_beside(deployment),
        "To be merged: each line takes the place of all others of its directive in such a block; "
        "listen 80 stands for your addresses, and upstream backends for your upstreams. Then nginx "
        f"-t, and {takes_it_by(deployment, directives)} nginx. intop apply does that on the hosts "
        "of the study, and undoes it.",
    )
    about = "".join(
        comment(
            f"{change.key} = {change.value}. Default: {change.default}.",
            *measured(deployment, change),
        )
        for change in deployment.changes
        if change.key in deployment.directives
    )
    unwritten = comment(
        *(
            f"Not below, since it only changes what stands already: {key} = "
            f"{deployment.directives[key]}"
            for key in written.unwritten
        )
    )
    return "\n".join(filter(None, [head, about, unwritten, written.text]))


def takes_it_by(deployment: Deployment, directives: Directives) -> Effective:
    """Return what makes nginx take its directives."""
    by = {directives.by_key[key].effective for key in deployment.directives}
    return "restart" if "restart" in by else "reload"


def _blocks(wanted: Iterable[Directive]) -> str:
    levels: set[Level] = {directive.level for directive in wanted}
    inner = ""
    if "upstream" in levels:
        inner += "    upstream backends {\n    }\n"
    if "listen" in levels:
        inner += "    server {\n        listen 80;\n    }\n"
    # What is of the whole file stands in front of a block.
    text = "events {\n}\n" if levels & {"main", "events"} else ""
    return text + (f"http {{\n{inner}}}\n" if levels - {"main", "events"} else "")


def _beside(deployment: Deployment) -> Iterable[str]:
    if deployment.sysctls:
        values = ", ".join(f"{key} = {value}" for key, value in deployment.sysctls.items())
        yield (
            f"It was measured together with keys of the kernel, and what this file has is not: "
            f"{values}. intop export --format sysctl writes them."
        )
