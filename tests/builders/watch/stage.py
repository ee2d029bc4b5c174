"""The stage of the watch, and its result."""

from collections.abc import Sequence
from dataclasses import dataclass

from intop.domain.configuration import DEFAULT
from intop.domain.trial import PlannedTrial, Trial
from intop.run.prospect import Prospect
from intop.run.stage import Batch, Expected, SoFar, Stage

TRIALS = 4


@dataclass(frozen=True)
class Watched:
    """The P99 (ms) of the default's trials, in order."""

    judged_ms: tuple[float, ...]


class Watch(Stage[Watched]):
    """The default for a while: two trials, and two further ones once they are measured."""

    name = "watch"
    description = "whether the default stays as it is"
    command = "watch"
    result_type = Watched
    needs = ("judge",)

    def ask(self, so_far: SoFar) -> Batch | None:
        if so_far.unfinished:
            return so_far.unfinished
        start = len(so_far.plan)
        if start == TRIALS:
            return None
        return Batch(
            [
                PlannedTrial(index=start + n, role="sentinel", configuration=DEFAULT)
                for n in range(2)
            ]
        )

    def result(self, trials: Sequence[Trial]) -> Watched:
        return Watched(tuple(t.judged_ms for t in trials))

    @classmethod
    def is_done(cls, prospect: Prospect) -> bool:
        places = prospect.places(cls.name)
        return len(places) == TRIALS and prospect.is_measured(places)

    @classmethod
    def expected(cls, prospect: Prospect) -> Expected:
        return Expected(trials=TRIALS)
