"""The outcome of an attempt, in words."""

from intop.run.attempt import Outcome
from intop.run.validity import Validity

KEPT = "lg: TCP metrics were kept"


def test_what_nobody_knows_stands_behind_no_reason() -> None:
    assert Outcome(unknown=KEPT).detail == KEPT
    failed = Outcome(validity=Validity("failed", "lb: refused"), unsettled="lb: 3", unknown=KEPT)
    assert failed.detail == "lb: refused; lb: 3"
