"""Loss by the segments that a host has sent again."""

import re
import socket
from pathlib import Path

import pytest

from intop.errors import CommandError
from intop.traffic import loss
from intop.traffic.loss import resent_percent
from kit.local_host import LocalHost

ROW = re.compile(r"^Tcp: (.*)$", re.MULTILINE)


def own_percent() -> float:
    names, numbers = (row.split() for row in ROW.findall(Path(loss.TABLE).read_text()))
    table = dict(zip(names, map(int, numbers), strict=True))
    return 100 * table["RetransSegs"] / (table["OutSegs"] + table["RetransSegs"])


def test_it_is_the_share_of_this_machines_own_segments() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
    assert resent_percent(LocalHost()) == pytest.approx(own_percent(), abs=0.1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tcp: OutSegs RetransSegs\nTcp: 75 25\n", 25.0),
        ("Tcp: OutSegs RetransSegs\nTcp: 0 0\n", None),
    ],
)
def test_it_is_of_all_segments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: float | None
) -> None:
    (tmp_path / "snmp").write_text(text)
    monkeypatch.setattr(loss, "TABLE", str(tmp_path / "snmp"))
    assert resent_percent(LocalHost()) == expected


@pytest.mark.parametrize("text", ["", "Tcp: OutSegs\nTcp: 5\n", "Tcp: a\nUdp: 1\n"])
def test_a_table_that_is_none_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (tmp_path / "snmp").write_text(text)
    monkeypatch.setattr(loss, "TABLE", str(tmp_path / "snmp"))
    with pytest.raises(CommandError, match="can't be read"):
        resent_percent(LocalHost())
