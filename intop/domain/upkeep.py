"""Results of `intop store`: what was copied, what is wrong, and what was won back."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Amounts:
    """The number of rows of each kind."""

    plans: int
    trials: int
    results: int


@dataclass(frozen=True, kw_only=True)
class Copied:
    """A campaign that is in another store by now."""

    study: str
    started_at: str
    campaign: int
    """Its number here."""
    copy: int
    """Its number there."""
    was_there: bool
    """Whether an equal one was there before, so that nothing was written."""
    amounts: Amounts


@dataclass(frozen=True, kw_only=True)
class Checked:
    """The content of a store, and its problems."""

    store: str
    campaigns: int
    amounts: Amounts
    problems: tuple[str, ...] = ()
    """A line for each."""
    unlisted: int = 0
    """Further problems."""


@dataclass(frozen=True, kw_only=True)
class Vacuumed:
    """The size of a store in bytes, before and after."""

    store: str
    before: int
    after: int
