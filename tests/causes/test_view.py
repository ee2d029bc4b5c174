"""What mechanisms bring, in words."""

import pytest

from builders.results import VERDICT
from intop.causes.view import mediation, sentence
from intop.domain.configuration import Configuration
from intop.domain.mediation import BlockedMechanism, Mediated, Mediation
from intop.domain.stats import Interval
from kit.golden import Golden
from kit.printed import shown

BLOCK = BlockedMechanism(mechanism="syn-backlog", values={"net.ipv4.tcp_syncookies": "1"})
TOLD = Mediated(
    block=BLOCK,
    about="Handshakes are forgotten.",
    rounds=8,
    gain=Interval(4.0, 3.8, 4.2),
    left=Interval(1.1, 1.0, 1.2),
    share=Interval(0.93, 0.87, 1.0),
    own=("net.core.somaxconn",),
)
FOUND = Mediation(
    winner=Configuration({"net.core.somaxconn": "1"}),
    against="",
    mechanisms=(TOLD,),
    untold={"rto": "no value is known that takes it away"},
    rounds=8,
)


def test_each_mechanism_has_its_share(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    output = shown(capsys, mediation("x86 slt", FOUND))
    golden(output)


def test_what_can_not_be_told_is_told(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    unclear = Mediated(block=BLOCK, about="A.", rounds=8, gain=TOLD.gain, left=TOLD.left)
    failed = Mediated(block=BLOCK, about="A.", rounds=0, detail="refused by the kernel")
    result = Mediation(winner=FOUND.winner, against="", mechanisms=(unclear, failed), rounds=8)
    output = shown(capsys, mediation("x86 slt", result))
    golden(output)
    nothing = Mediation(winner=FOUND.winner, against="", mechanisms=())
    assert sentence(nothing) == "no known mechanism, so nothing was measured"
    output = " ".join(shown(capsys, mediation("x86 slt", VERDICT)).split())
    assert "there is no gain to explain" in output
