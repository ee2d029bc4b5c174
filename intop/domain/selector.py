"""Selectors: the side of a comparison that is meant, as it is typed."""

import re
from dataclasses import dataclass, fields

from intop.domain.cluster import MACHINES
from intop.domain.trial import Conditions
from intop.errors import UsageError

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
