"""A stage of a campaign: it asks for trials, and makes a result of them.

A stage decides by its plan and its trials alone, so that one that was killed goes on, and ends, as
it would have. `executor.execute` carries it out.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

from intop.domain.campaign_status import Bound, Place
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.workload import Budget
from intop.run.context import Task
from intop.run.effort import Span
from intop.run.prospect import Prospect
from intop.run.testbed import Testbed

R = TypeVar("R")


@dataclass(frozen=True)
class Batch:
    """Trials to measure next. Trials that are not in the plan yet are added to it."""

    trials: Sequence[PlannedTrial]
    later: Sequence[PlannedTrial] = ()
    """Trials that follow in the plan, and wait for a batch that asks for them."""


@dataclass(frozen=True, kw_only=True)
class SoFar:
    """A stage's plan, with its settled trials."""

    plan: Sequence[PlannedTrial]
    trials: Sequence[Trial]
    """The last attempts that are not going to be measured again, in the order of the plan."""
    testbed: Callable[[], Testbed]
    """Connects to the cluster if nothing has yet, and returns the first of its replicas."""
    testbeds: Callable[[], Sequence[Testbed]]
    """Connects alike, and returns all replicas by place."""

    def first(self, count: int) -> list[Trial]:
        """Return the settled trials among the first `count` of the plan."""
        among = {p.index for p in self.plan[:count]}
        return [t for t in self.trials if t.planned.index in among]

    def beginning_at(self, index: int) -> "SoFar":
        """Return the part that begins with this place of the plan."""
        return replace(
            self,
            plan=[p for p in self.plan if p.index >= index],
            trials=[t for t in self.trials if t.planned.index >= index],
        )

    @property
    def unfinished(self) -> Batch | None:
        """The whole plan, as long as not all of it is measured."""
        return Batch(self.plan) if len(self.trials) < len(self.plan) else None


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The extent of a stage: its trials and its time."""

    trials: int = 0
    """The planned trials, and those that it may add to its plan."""
    bound: Bound = ""
    """The relation of `trials` to the final number."""
    likely: int | None = None
    """The likely number of trials; None for `trials`."""
    most: int | None = None
    """The number of trials that it hardly exceeds; None for `trials`."""
    time: Span | None = None
    """The time left, where that is not the time of its trials."""


class Stage(ABC, Generic[R]):
    """A stage of one architecture under one workload."""

    name: ClassVar[str]
    description: ClassVar[str]
    command: ClassVar[str]
    """The command that carries it out."""
    result_type: ClassVar[type]
    """The type of its result, which is stored where the store has a kind for it."""
    needs: ClassVar[tuple[str, ...]] = ()
    """The stages whose results it takes."""
    finds: ClassVar[str] = ""
    """The name of its result where that is missing."""
    hands_on: ClassVar[tuple[str, ...]] = ()
    """The paper's names of its result, for static and dynamic requests."""
    is_of_the_paper: ClassVar[bool] = True
    measures: ClassVar[bool]
    """Whether it asks for trials. A stage without `ask` only computes."""
    prepares: ClassVar[bool] = False
    """Whether it comes before there is one duration for all trials."""
    is_apart: ClassVar[bool] = False
    """Whether its trials say nothing of the campaign's cluster as such."""
    stays_on_replicas: ClassVar[bool] = False
    """Whether it compares trials of one replica only, and depends on its earlier comparisons. A
    replica that drifts does it no harm, and nothing of it may be measured again."""
    is_listed: ClassVar[bool] = True
    """Whether `status` has it among the campaign's stages, once it is begun."""
    explores: ClassVar[bool] = False
    """Whether its trials look for good configurations. The bad ones are pruned."""
    ends_by_failures: ClassVar[bool] = True
    """Whether more than `max_failures` failed trials end it. Else a failure is a result."""
    ends_by_overload: ClassVar[bool] = True
    """Whether a default that misses its rate or fails its requests ends it (`domain/overload.py`).
    Else that is a result, such as at a rate that is to be too much."""
    measures_once: ClassVar[bool] = False
    """Whether a disturbed trial is not measured again, since its time is over."""
    observes: ClassVar[bool] = False
    """Whether it measures the host as it is: sets nothing, and never measures a time again."""
    start: int = 0
    """The first place of the plan that counts. Later places have replaced those before."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.measures = cls.ask is not Stage.ask

    def __init__(self, task: Task) -> None:
        self.task = task

    @property
    def budget(self) -> Budget:
        """The study's."""
        return self.task.context.study.budget

    @classmethod
    def begin(cls, task: Task) -> Self:
        """Return the stage as `tune` carries it out."""
        return cls(task)

    def ask(self, so_far: SoFar) -> Batch | None:
        """Return what to measure next; None when that is all."""
        del so_far
        return None

    @abstractmethod
    def result(self, trials: Sequence[Trial]) -> R:
        """Return the result of all trials that it asked for."""

    @classmethod
    def is_wanted(cls, prospect: Prospect) -> bool:
        """Whether `tune` has it in this study."""
        del prospect
        return True

    @classmethod
    def is_done(cls, prospect: Prospect) -> bool:
        """Whether it has ended."""
        return prospect.has(cls.result_type)

    @classmethod
    def is_through(cls, prospect: Prospect, places: Sequence[Place]) -> bool:
        """Whether nothing of its plan is still to be measured, for a stage of its own."""
        return prospect.is_measured(places)

    @classmethod
    def is_idle(cls, prospect: Prospect) -> bool:
        """Whether earlier results leave it nothing to do."""
        del prospect
        return False

    @classmethod
    def is_left(cls, prospect: Prospect) -> bool:
        """Whether `tune` would still carry it out."""
        return cls.is_wanted(prospect) and not (cls.is_done(prospect) or cls.is_idle(prospect))

    @classmethod
    def expected(cls, prospect: Prospect) -> Expected:
        """Return how much there is to it, by its plan and the budget."""
        planned = len(prospect.places(cls.name))
        return Expected(trials=planned) if planned else cls.unplanned(prospect)

    @classmethod
    def unplanned(cls, prospect: Prospect) -> Expected:
        """Return how much there is to it before it has a plan, by budget and request."""
        del prospect
        return Expected()


AnyStage = Stage[Any]
