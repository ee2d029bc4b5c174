"""What the lab lets namespaces choose, and takes back, on a machine that is a folder."""

from pathlib import Path

import pytest

from intop.domain.cluster import CongestionControl, LabSpec
from intop.lab import defaults


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """A machine of bbr, as this kernel's default may be."""
    folder = tmp_path / "ipv4"
    folder.mkdir()
    (folder / "tcp_congestion_control").write_text("bbr\n")
    (folder / "tcp_allowed_congestion_control").write_text("reno bbr\n")
    return folder


def allowed(settings: Path) -> list[str]:
    return (settings / "tcp_allowed_congestion_control").read_text().split()


def test_it_is_allowed_as_long_as_there_is_a_lab(tmp_path: Path, settings: Path) -> None:
    record = tmp_path / "record"
    assert defaults.allow(record, {"cubic"}, settings) is None
    assert defaults.allow(record, {"cubic", "vegas"}, settings) is None  # by another lab
    assert allowed(settings) == ["reno", "bbr", "cubic", "vegas"]
    defaults.disallow(record, settings)
    assert allowed(settings) == ["reno", "bbr"]
    assert not record.exists()
    defaults.disallow(record, settings)


def test_what_others_have_added_meanwhile_stays(tmp_path: Path, settings: Path) -> None:
    defaults.allow(tmp_path / "record", ["cubic"], settings)
    (settings / "tcp_allowed_congestion_control").write_text("reno bbr cubic htcp\n")
    defaults.disallow(tmp_path / "record", settings)
    assert allowed(settings) == ["reno", "bbr", "htcp"]


def test_a_machine_that_allows_it_is_left_as_it_is(tmp_path: Path, settings: Path) -> None:
    (settings / "tcp_allowed_congestion_control").write_text("reno cubic\n")
    assert defaults.allow(tmp_path / "record", ["cubic"], settings) is None
    defaults.disallow(tmp_path / "record", settings)
    assert allowed(settings) == ["reno", "cubic"]


def test_it_stays_where_the_machine_uses_it_by_now(tmp_path: Path, settings: Path) -> None:
    defaults.allow(tmp_path / "record", ["cubic"], settings)
    (settings / "tcp_congestion_control").write_text("cubic\n")
    defaults.disallow(tmp_path / "record", settings)
    assert allowed(settings) == ["reno", "bbr", "cubic"]


def test_a_machine_that_refuses_is_no_error_and_not_ours_to_restore(tmp_path: Path) -> None:
    record = tmp_path / "record"
    assert "namespaces may not choose cubic here" in (
        defaults.allow(record, {"cubic"}, tmp_path / "none") or ""
    )
    assert not record.exists()


def test_each_role_has_its_own() -> None:
    spec = LabSpec(congestion_control=CongestionControl(backends="bbr", clients="reno"))
    assert defaults.choices(spec) == {
        "lg": "reno",
        "lb": "cubic",
        **dict.fromkeys(("b1", "b2", "b3"), "bbr"),
    }


def test_a_guest_keeps_its_kernels() -> None:
    spec = LabSpec(kind="vm", congestion_control=CongestionControl(backends="bbr"))
    assert "lb" not in defaults.choices(spec)
    with pytest.raises(ValueError, match="its kernel's own"):
        LabSpec(kind="vm", congestion_control=CongestionControl(load_balancer="bbr"))
