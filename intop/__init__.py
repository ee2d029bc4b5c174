"""intop tunes Linux kernel parameters for Nginx clusters and proves the result by measurement."""

from pathlib import Path
from typing import TYPE_CHECKING

from intop.version import __version__

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["__version__", "trials"]


def trials(
    store: str | Path,
    *,
    study: str | None = None,
    campaign: int | None = None,
    arch: str | None = None,
    workload: str | None = None,
    catalogue: Path | None = None,
) -> "DataFrame":
    """Return the trials of a store (a file, or a URL), or some of them, as a data frame.

    docs/trials.md describes the columns. The catalogue names the components of parameters; the
    default is the one that comes with intop. Raises ResultMissingError if there are no such trials,
    UsageError if `store` is no store.
    """
    from intop.deploy.export import frames

    return frames.trials(
        store,
        study=study,
        campaign=campaign,
        arch=arch,
        workload=workload,
        catalogue=catalogue,
    )
