"""When a guardrail is kept, broken or unclear, and how that is said."""

from dataclasses import replace

import pytest

from builders.results import BROKEN_CPU, CPU, P50, UNCLEAR_CPU
from intop.domain.guardrails import NO_GUARDRAILS, Guardrail, Guardrails

RATE = replace(P50, quantity="rate", worse="lower", effect=0.97, low=0.95, high=0.985, margin=0.99)


@pytest.mark.parametrize(
    ("low", "high", "state"),
    [
        (-3.0, -1.0, "kept"),
        (-1.0, 4.9, "kept"),
        (-1.0, 5.0, "kept"),  # worse than the margin is what is not accepted
        (-1.0, 5.1, "unclear"),
        (5.0, 6.0, "unclear"),
        (5.1, 6.0, "broken"),
    ],
)
def test_the_interval_against_the_margin_makes_the_state(
    low: float, high: float, state: str
) -> None:
    assert state == replace(CPU, low=low, high=high).state


@pytest.mark.parametrize(
    ("low", "high", "state"),
    [(0.99, 1.2, "kept"), (0.985, 1.0, "unclear"), (0.9, 0.99, "unclear"), (0.9, 0.98, "broken")],
)
def test_of_a_rate_less_is_worse(low: float, high: float, state: str) -> None:
    assert state == replace(RATE, low=low, high=high).state


def test_an_effect_that_is_always_the_same_has_a_state_too() -> None:
    assert replace(CPU, low=0.0, high=0.0, margin=0.0).state == "kept"
    assert replace(CPU, low=0.1, high=0.1, margin=0.0).state == "broken"


@pytest.mark.parametrize(
    ("guardrail", "distance"),
    [
        (replace(CPU, effect=3.0, low=-1.0, high=7.0, margin=5.0), 0.5),
        (replace(CPU, effect=6.0, low=2.0, high=10.0, margin=5.0), 0.25),
        (replace(RATE, effect=0.98, low=0.96, high=1.0, margin=0.99), 0.5),
    ],
)
def test_the_distance_from_the_margin_is_in_half_widths(
    guardrail: Guardrail, distance: float
) -> None:
    assert pytest.approx(distance) == guardrail.distance


@pytest.mark.parametrize(
    ("guardrail", "message"),
    [
        (UNCLEAR_CPU, "CPU may be higher by up to 8 points"),
        (BROKEN_CPU, "CPU is higher by 12 points (9 to 15; accepted: 5)"),
        (CPU, "CPU is higher by 5 points at most"),
        (replace(P50, high=1.302), "P50 may be higher by up to 30 %"),
        (
            replace(P50, effect=1.5, low=1.4, high=1.6),
            "P50 is higher by 50 % (40 to 60; accepted: 10)",
        ),
        (RATE, "rate is lower by 3 % (1.5 to 5; accepted: 1)"),
        (replace(RATE, high=1.0), "rate may be lower by up to 5 %"),
        (
            replace(CPU, quantity="error share", low=0.0, high=0.34, margin=0.1),
            "error share may be higher by up to 0.34 points",
        ),
        (
            replace(CPU, quantity="memory", unit="MiB", high=123.4, margin=64.0),
            "memory may be higher by up to 123 MiB",
        ),
    ],
)
def test_a_guardrail_in_words(guardrail: Guardrail, message: str) -> None:
    assert message == guardrail.summary


def test_without_guardrails_there_is_no_margin() -> None:
    names = Guardrails.__dataclass_fields__
    assert all(getattr(NO_GUARDRAILS, name) is None for name in names)
    none = [name for name in names if getattr(Guardrails(), name) is None]
    assert none == ["slow_ms"]
