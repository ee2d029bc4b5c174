"""What a report is made of: stages, and what was refused, put together."""

from dataclasses import replace

from builders.trials import places, trial
from intop.domain.configuration import Configuration
from intop.domain.trial import Trial
from intop.report.gather import refused_keys, refused_trials, stage_records


def test_a_stage_counts_its_last_attempts_and_those_before_them() -> None:
    plan = places(3)
    first = replace(trial(stage="screen"), planned=plan[0], status="disturbed")
    second = replace(first, attempt=1, status="ok", started_at="2026-01-01T00:10:00+00:00")
    words = {"collect": "all of them", "screen": "which matter"}
    (record,) = stage_records({"screen": len(plan)}, [first, second], words)
    assert record.description == "which matter"
    assert (record.stage, record.planned, record.measured, record.repeated) == ("screen", 3, 1, 1)
    assert record.by_status == {"ok": 1}
    assert ("2026-01-01T00:00:00+00:00", second.started_at) == (record.started_at, record.ended_at)
    assert record.seconds == 24.0


def test_a_stage_of_which_nothing_was_measured_has_no_times() -> None:
    (record,) = stage_records({"screen": 2}, [], {"screen": "which matter"})
    assert (record.started_at, record.ended_at, record.measured) == ("", "", 0)


def test_attempts_that_say_the_same_but_for_numbers_are_one_reason() -> None:
    def disturbed(detail: str, value: str) -> Trial:
        made = trial(Configuration({"net.core.somaxconn": value}), status="disturbed")
        return replace(made, detail=detail)

    made = [disturbed("lb: 23% went to bash", "1"), disturbed("lb: 31.5% went to bash", "2")]
    made += [disturbed("lb: 23% went to cc1", "2"), trial()]
    bash, cc1 = refused_trials(made)
    assert (
        bash.reason,
        bash.attempts,
        bash.configurations,
        bash.detail,
    ) == ("disturbed", 2, 2, "lb: 23% went to bash")
    assert (cc1.attempts, cc1.detail) == (1, "lb: 23% went to cc1")


def test_keys_are_put_together_by_the_kind_of_their_reason() -> None:
    most, other = refused_keys({"a": "locked: by x", "b": "no effect", "c": "locked: by y"})
    assert (
        most.reason,
        most.keys,
        most.details,
    ) == ("locked", ("a", "c"), {"a": "by x", "c": "by y"})
    assert (other.reason, other.keys, other.details) == ("no effect", ("b",), {})
