"""An apt of our own: what it is told, and what it says."""

from pathlib import Path

import pytest

from intop.errors import LabError
from intop.lab import packages
from intop.lab.packages import Package

URIS = """\
'http://mirror.example/z/zlib1g_1.2.13.dfsg-1_arm64.deb' zlib1g_1%3a1.2.13.dfsg-1_arm64.deb 8
'http://mirror.example/l/libc6_2.36-9%2bdeb12u14_arm64.deb' libc6_2.36-9+deb12u14_arm64.deb 2
'http://mirror.example/pool/n/nginx-common_1.22.1-9_all.deb' nginx-common_1.22.1-9_all.deb 11491\x20
N: something to know
"""


def test_packages_are_read_from_what_apt_would_fetch() -> None:
    assert packages.parse_uris(URIS) == [
        Package("libc6", "2.36-9+deb12u14", "arm64"),
        Package("nginx-common", "1.22.1-9", "all"),
        Package("zlib1g", "1:1.2.13.dfsg-1", "arm64"),
    ]
    assert str(Package("zlib1g", "1:1.2", "arm64")) == "zlib1g:arm64=1:1.2"
    assert packages.parse_uris("") == []


def test_apt_is_kept_from_the_machines_own_state(tmp_path: Path) -> None:
    packages.prepare("arm", tmp_path)
    text = (tmp_path / "apt.conf").read_text()
    assert 'APT::Architectures { "arm64"; };' in text
    for place in ("Dir::State", "Dir::State::status", "Dir::Cache", "Dir::Log"):
        assert f'{place} "{tmp_path}/' in text
    assert "Dir::Etc" not in text  # the machine's own sources, keys and proxies are used
    assert (tmp_path / "state/status").read_text() == ""


def test_apt_sees_the_callers_proxy_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, object] = {}

    def run(arguments: list[str], **options: object) -> str:
        seen.update(options)
        return URIS

    monkeypatch.setattr(packages, "run", run)
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("SECRET", "secret")
    assert len(packages.resolve(tmp_path, ["nginx"])) == 3
    assert seen["extra"] == {"https_proxy": "http://proxy.example:3128"}


def test_the_first_complaint_says_most() -> None:
    output = "apt-get: exit code 100: W: old\nE: Unable to locate package linux-image-x\nE: more"
    assert packages.first_complaint(LabError(output)) == "E: Unable to locate package linux-image-x"
    assert packages.first_complaint(LabError("no apt-get")) == "no apt-get"
