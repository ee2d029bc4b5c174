"""What `intop store` says of stores: what was copied, what is wrong, what was won back."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Amounts:
    """How many rows of each kind there are."""

    plans: int
    trials: int
    results: int


@dataclass(frozen=True, kw_only=True)
class Copied:
    """A campaign in another store: its number here and there. `was_there` is true of an equal one
    that was there before, so that nothing was written.
    """

    study: str
    started_at: str
    campaign: int
    copy: int
    was_there: bool
    amounts: Amounts


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What a store has, and what of it is not as intop writes it: a line for each problem.

    `unlisted` problems more were found.
    """

    store: str
    campaigns: int
    amounts: Amounts
    problems: tuple[str, ...] = ()
    unlisted: int = 0


@dataclass(frozen=True, kw_only=True)
class Vacuumed:
    """The size of a store in bytes, before and after."""

    store: str
    before: int
    after: int
