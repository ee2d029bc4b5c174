"""The sides of a comparison: selectors as they are typed, and what they mean in a store."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields

from intop.domain.cluster import MACHINES
from intop.domain.trial import Conditions
from intop.errors import UsageError
from intop.run import registry
from intop.run.context import Context
from intop.store import Campaign, Store, Subject

MOST_LISTED = 12
"""Campaigns that an error lists, the latest ones."""

STORED = ("study", "campaign")
"""Names that a selector may ask for beside conditions."""
NAMES = (*STORED, *(f.name for f in fields(Conditions) if f.name != "workload"))
"""All names that a selector may ask for. Workloads are compared one by one."""
FORMS = "x86, arm, campaign:3, kernel:6.1 or several of them with commas, such as kernel:6.1,x86"


@dataclass(frozen=True)
class Selector:
    """A typed side of a comparison."""

    text: str
    wanted: tuple[tuple[str, str], ...]
    """Pairs of a name (one of NAMES) and its wanted value."""

    @property
    def names(self) -> frozenset[str]:
        """The names that it asks for."""
        return frozenset(name for name, _ in self.wanted)

    @property
    def is_architecture(self) -> bool:
        """Whether it names an architecture and nothing else."""
        return len(self.wanted) == 1 and self.names == {"arch"}

    def wants(self, name: str, value: object) -> bool:
        """Whether this value of a condition (or study, or campaign) is as it is wanted, if it is.

        Words are enough: `kernel:6.1` means 6.1.0-56-amd64 and not 6.18.44, `cpu:epyc` AMD EPYC.
        """
        return all(_has_words(str(value), words) for n, words in self.wanted if n == name)

    def fits(self, conditions: Conditions) -> bool:
        """Whether trials under these conditions are meant, whatever their study and campaign."""
        names = self.names.difference(STORED)
        return all(self.wants(name, getattr(conditions, name)) for name in names)


def selector(text: str) -> Selector:
    """Return the selector of a typed side. Raises UsageError for what is none."""
    return Selector(text, tuple(_term(term.strip(), text) for term in text.split(",")))


def _term(term: str, text: str) -> tuple[str, str]:
    name, colon, value = (part.strip() for part in term.partition(":"))
    if not colon and name in MACHINES:
        return "arch", name
    if not colon or not value:
        raise UsageError(f"{text!r} is no side of a comparison. Say {FORMS}")
    if name not in NAMES:
        raise UsageError(f"{text!r}: no trial has a {name!r}. Choose by {', '.join(NAMES)}")
    if name == "arch" and value not in MACHINES:
        raise UsageError(f"{text!r}: an architecture is {' or '.join(MACHINES)}")
    if name == "campaign" and not value.isdecimal():
        raise UsageError(f"{text!r}: a campaign is called by its number, such as campaign:3")
    return name, value


def _has_words(value: str, words: str) -> bool:
    """Whether words stand in a value, not within a longer word, version or number."""
    return re.search(rf"(?<![\w.-]){re.escape(words)}(?!\w)", value, re.IGNORECASE) is not None


@dataclass(frozen=True, kw_only=True)
class ChosenSide:
    """A side by the `name` that was typed; `workloads` are those measured as the selector wants."""

    name: str
    campaign: Campaign
    arch: str
    workloads: tuple[str, ...]


def chosen_side(context: Context, selector: Selector) -> ChosenSide:
    """Return the side that a selector means, in the latest campaign that has such a side.

    An architecture alone is the context's campaign's. Raises UsageError where there is no such
    side, or more than one architecture has it.
    """
    if selector.is_architecture:
        ((_, arch),) = selector.wanted
        if arch not in context.study.clusters and context.store.is_empty(context.campaign, arch):
            raise UsageError(_nothing_of(context, selector))
        names = tuple(workload.name for workload in context.workloads)
        return ChosenSide(name=selector.text, campaign=context.campaign, arch=arch, workloads=names)
    wanted = {workload.name for workload in context.workloads}
    for campaign in reversed(campaigns_of(context, selector)):
        by_arch: dict[str, list[str]] = {}
        for subject, conditions in measured(context.store, campaign):
            if subject.workload in wanted and selector.fits(conditions):
                by_arch.setdefault(subject.arch, []).append(subject.workload)
        if len(by_arch) > 1:
            *archs, last = by_arch
            raise UsageError(
                f"{selector.text!r} is {', '.join(archs)} and {last} in campaign {campaign.id}: "
                f"say which one, such as {selector.text},{last}"
            )
        for arch, workloads in by_arch.items():
            return ChosenSide(
                name=selector.text, campaign=campaign, arch=arch, workloads=tuple(workloads)
            )
    raise UsageError(_nothing_of(context, selector))


def _nothing_of(context: Context, selector: Selector) -> str:
    listed = "\n  ".join(_choices(context, selector))
    if selector.is_architecture:
        return (
            f"{context.study.path} has no cluster for {selector.text}, and campaign "
            f"{context.campaign.id} has no trials of it. Compare two of these sides:\n  {listed}"
        )
    return f"the store has nothing that is {selector.text!r}. It has:\n  {listed}"


def campaigns_of(context: Context, selector: Selector | None) -> list[Campaign]:
    """The campaigns that a selector may mean, the oldest first: of the study, or as it says."""
    names = selector.names if selector else frozenset()
    return [
        campaign
        for campaign in context.store.campaigns()
        if ("study" in names or campaign.study == context.study.name)
        and (
            selector is None
            or (selector.wants("study", campaign.study) and selector.wants("campaign", campaign.id))
        )
    ]


def measured(store: Store, campaign: Campaign) -> Iterator[tuple[Subject, Conditions]]:
    """Return the subjects with comparable trials, and the conditions of the last trial."""
    for subject in store.subjects(campaign):
        for stage, conditions in reversed(store.conditions(subject).items()):
            if not registry.stage(stage).is_apart:
                yield subject, conditions
                break


def _choices(context: Context, selector: Selector) -> Iterator[str]:
    """Return the sides that there are, with the conditions that the selector asks for."""
    shown = [n for n in ("kernel", "nginx") if n not in selector.names]
    names = [*sorted(selector.names.difference(STORED, ("arch",))), *shown]
    campaigns = context.store.campaigns()
    if "study" not in selector.names:
        campaigns = [c for c in campaigns if c.study == context.study.name]
    if len(campaigns) > MOST_LISTED:
        yield f"(the latest {MOST_LISTED} of {len(campaigns)} campaigns)"
    for campaign in campaigns[-MOST_LISTED:]:
        study = f"study:{campaign.study}," if "study" in selector.names else ""
        for subject, conditions in measured(context.store, campaign):
            values = ", ".join(f"{name} {getattr(conditions, name) or '-'}" for name in names)
            yield f"{study}campaign:{campaign.id},{subject.arch} {subject.workload}: {values}"
