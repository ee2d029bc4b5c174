"""Debian packages of any architecture, found and fetched by an apt of our own.

It uses the machine's sources, keys and proxies, and nothing else of the machine's apt: lists,
status and cache are in a folder of ours. The machine learns of no foreign architecture.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from intop.errors import LabError
from intop.lab.commands import run

DEBIAN_ARCH: Mapping[str, str] = {"x86": "amd64", "arm": "arm64"}
UPDATE_LIMIT_S = 300.0
DOWNLOAD_LIMIT_S = 900.0
PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy")
"""Variables of the caller's environment that apt needs, where the machine is behind a proxy."""

_FETCHED = re.compile(r"'[^']*' ([^\s_]+)_([^\s_]+)_([^\s_]+)\.deb \d+")


@dataclass(frozen=True, order=True)
class Package:
    """A package of the version that apt chose; `arch` is Debian's word, or `all`."""

    name: str
    version: str
    arch: str

    def __str__(self) -> str:
        return f"{self.name}:{self.arch}={self.version}"


def settings(arch: str, folder: Path) -> str:
    """The file that apt reads after the machine's own settings."""
    debian = DEBIAN_ARCH[arch]
    return f"""\
#clear APT::Architectures;
APT::Architecture "{debian}";
APT::Architectures {{ "{debian}"; }};
APT::Get::Assume-Yes "true";
APT::Install-Recommends "false";
APT::Install-Suggests "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Retries "2";
Dir::State "{folder}/state";
Dir::State::status "{folder}/state/status";
Dir::Cache "{folder}/cache";
Dir::Log "{folder}/log";
"""


def parse_uris(text: str) -> list[Package]:
    """The packages that `apt-get install --print-uris` would fetch."""
    matches = (_FETCHED.match(line) for line in text.splitlines())
    return sorted(
        Package(*(unquote(part) for part in match.groups())) for match in matches if match
    )


def prepare(arch: str, folder: Path) -> None:
    """Make the folder of our apt."""
    for part in ("state/lists/partial", "cache/archives/partial", "log"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "state/status").touch()
    (folder / "apt.conf").write_text(settings(arch, folder))


def update(folder: Path) -> None:
    """Fetch the lists of what there is; a source that fails is left as it was.

    Raises LabError when apt gives up altogether.
    """
    _apt(folder, "update", limit_s=UPDATE_LIMIT_S)


def resolve(folder: Path, names: Sequence[str]) -> list[Package]:
    """Return these packages and their dependencies. Raises LabError when one is not to be had."""
    return parse_uris(_apt(folder, "install", "--print-uris", *names, limit_s=UPDATE_LIMIT_S))


def download(folder: Path, packages: Sequence[Package], into: Path) -> list[Path]:
    """Fetch packages, checked against the lists; return their files."""
    _apt(folder, "download", *map(str, packages), limit_s=DOWNLOAD_LIMIT_S, at=into)
    return sorted(into.glob("*.deb"))


def _apt(folder: Path, *arguments: str, limit_s: float, at: Path = Path("/")) -> str:
    command = ["apt-get", "-qq", "-c", str(folder / "apt.conf"), *arguments]
    both = {*PROXIES, *(name.upper() for name in PROXIES)}
    proxies = {name: os.environ[name] for name in both if name in os.environ}
    return run(command, timeout_s=limit_s, folder=str(at), extra=proxies)


def sources() -> str:
    """The machine's lists of sources, as one text; it may hold secrets, so only compare it."""
    folder = Path("/etc/apt")
    files = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]
    texts = []
    for file in files:
        try:
            texts.append(file.read_text(errors="replace"))
        except OSError:
            continue
    return "\n".join(texts)


def first_complaint(error: LabError) -> str:
    """Return apt's first line with an error, else its whole output."""
    lines = str(error).splitlines()
    return next((line.strip() for line in lines if line.lstrip().startswith("E: ")), str(error))
