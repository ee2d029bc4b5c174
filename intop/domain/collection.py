"""The result of a collection."""

from dataclasses import dataclass

from intop.domain.agreement import Agreement
from intop.domain.drift import Drift
from intop.domain.replicates import Noise
from intop.domain.trial import Trial


@dataclass(frozen=True, kw_only=True)
class Collected:
    """What was collected. Not stored: the trials are."""

    trials: tuple[Trial, ...]
    """The last attempt at each."""
    replicates: int
    """Trials of configurations that were chosen to be measured again, without sentinels."""
    drift: Drift
    """The drift of the default."""
    noise: Noise
    """Of configurations but the default."""
    default_noise: Noise
    """Of the default, which may be another."""
    replicas: Agreement | None = None
    """Whether the replicas of the cluster agree, None where there is only one."""
