"""Which models may stand for which campaign, and what is said of those that may."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from builders import results as findings
from builders.trials import CONDITIONS
from intop.campaign.models import obstacles, remarks
from intop.domain.artefact import FORMAT, Manifest, Origin, fingerprint, probes
from intop.domain.comparison import MUST_BE_EQUAL
from intop.domain.encoding import Variable

SIZE = Variable(name="a.size", key="a.size", low=4096, high=4194304, scale="log")
SHARE = Variable(name="a.share", key="a.share", low=0, high=2.5)
KIND = Variable(name="a.kind", key="a.kind", choices=("cubic", "reno", "bbr"))
SWITCH = Variable(name="a.switch", key="a.switch", choices=("0", "1"))
ALL = (SIZE, SHARE, KIND, SWITCH)

ORIGIN = replace(
    findings.ORIGIN,
    variables=ALL,
    defaults={v.key: "1" for v in ALL},
    replicas=("lb-a", "lb-b"),
    configurations=40,
    trials=55,
)


def of(*variables: Variable) -> Origin:
    return replace(ORIGIN, variables=variables)


def with_kind(*choices: str) -> Origin:
    return of(SIZE, SHARE, replace(KIND, choices=choices), SWITCH)


def under(**conditions: Any) -> Origin:
    return replace(ORIGIN, conditions=replace(CONDITIONS, **conditions))


def test_nothing_is_said_of_a_campaigns_own_models() -> None:
    assert obstacles(ORIGIN, ORIGIN) == []
    assert remarks(ORIGIN, ORIGIN) == []


@pytest.mark.parametrize(
    ("ours", "message"),
    [
        (replace(ORIGIN, arch="arm"), "architecture: x86 against arm"),
        (replace(ORIGIN, target="runs", unit="1/s"), "target: P99 in ms against runs in 1/s"),
        (of(SIZE, SHARE, KIND), "a.switch: varied there, not here"),
        (of(*ALL, replace(SHARE, name="a.new")), "a.new: varied here, not there"),
        (
            of(replace(SIZE, high=8388608), SHARE, KIND, SWITCH),
            "a.size: 4096 to 4194304 (log) against 4096 to 8388608 (log)",
        ),
        (
            of(SIZE, replace(SHARE, low=0.1, scale="log"), KIND, SWITCH),
            "a.share: 0 to 2.5 (linear) against 0.1 to 2.5 (log)",
        ),
        (with_kind("cubic", "reno"), "a.kind: one of cubic, reno, bbr against one of cubic, reno"),
        (
            with_kind("reno", "cubic", "bbr"),
            "a.kind: one of cubic, reno, bbr against one of reno, cubic, bbr",
        ),
        (
            of(SHARE, SIZE, KIND, SWITCH),
            "order: a.size, a.share, a.kind, a.switch against a.share, a.size, a.kind, a.switch",
        ),
        (under(rate_rps=300.0), "rate_rps: 100.0 against 300.0"),
    ],
)
def test_models_of_something_else_are_refused_by_name(ours: Origin, message: str) -> None:
    assert [message] == obstacles(ORIGIN, ours)


@pytest.mark.parametrize("name", MUST_BE_EQUAL)
def test_every_condition_of_the_load_must_be_equal(name: str) -> None:
    other: Any = "other" if isinstance(getattr(CONDITIONS, name), str) else 77
    (message,) = obstacles(ORIGIN, under(**{name: other}))
    assert message.startswith(f"{name}: ")


def test_trials_since_training_are_told() -> None:
    (message,) = remarks(ORIGIN, replace(ORIGIN, trials=60, samples="4567"))
    assert message == "they were fitted to 55 trials, and the campaign has 60 by now"


@pytest.mark.parametrize(
    "changes", [{"campaign": "2026-02-02T00:00:00+00:00"}, {"study": "mine"}, {"trials": 50}]
)
def test_models_of_other_trials_are_told_whose_they_are(changes: dict[str, Any]) -> None:
    (message,) = remarks(ORIGIN, replace(ORIGIN, samples="4567", **changes))
    assert (
        message == "they are of other trials: 55 of 40 configurations on lb-a, lb-b, "
        "study lab of 2026-01-01T00:00:00+00:00"
    )


def test_another_machine_is_told_with_both_values() -> None:
    other = under(machine="x86_64_v4", kernel="6.1", cpu="Xeon", nginx="nginx/1.26")
    (message,) = remarks(ORIGIN, other)
    assert message.startswith("they were measured elsewhere (theirs against this one's): ")
    for pair in ("cpu: EPYC against Xeon", "machine: x86_64 against x86_64_v4", "kernel: "):
        assert pair in message


def test_other_defaults_are_told_and_no_obstacle() -> None:
    ours = replace(ORIGIN, defaults={**dict.fromkeys(ORIGIN.defaults, "2"), "b": "1"})
    assert obstacles(ORIGIN, ours) == []
    (message,) = remarks(ORIGIN, ours)
    assert "a.size: 1 against 2; a.share: 1 against 2; a.kind: 1 against 2; and 1 more" in message


@pytest.mark.parametrize("field", [f.name for f in fields(Variable) if f.name != "choices"])
def test_the_fingerprint_changes_with_all_of_a_variable(field: str) -> None:
    others = {"name": "b", "key": "b", "low": 4095, "high": 4194305, "scale": "linear", "own": 0}
    other = others[field]
    changed: Any = replace(SIZE, **{field: other})
    assert fingerprint([SIZE]) != fingerprint([changed])


def test_the_fingerprint_is_of_choices_and_order_and_not_of_how_numbers_are_written() -> None:
    assert fingerprint(ALL) != fingerprint(ALL[::-1])
    assert fingerprint([KIND]) != fingerprint([replace(KIND, choices=KIND.choices[::-1])])
    assert fingerprint([SIZE]) == fingerprint([replace(SIZE, low=4096.0)])


def test_a_manifest_with_the_fingerprint_of_another_space_is_none() -> None:
    output = {"format": FORMAT, "saved_at": "", "versions": {}, "models": ()}
    manifest = Manifest(origin=ORIGIN, space=fingerprint(ALL), **output)
    with pytest.raises(ValueError, match="the variables have the fingerprint"):
        replace(manifest, space=fingerprint([SIZE]))


def test_models_are_asked_about_values_that_can_be() -> None:
    asked = probes(ALL)
    assert asked.shape == (5, 4)
    assert list(asked[0]) == [4096, 0, 0, 0]
    assert list(asked[-1]) == [4194304, 2.5, 2, 1]
    assert np.array_equal(asked[:, 2:], np.rint(asked[:, 2:]))
