"""What was collected."""

from dataclasses import dataclass

from intop.domain.agreement import Agreement
from intop.domain.drift import Drift
from intop.domain.replicates import Noise
from intop.domain.trial import Trial


@dataclass(frozen=True, kw_only=True)
class Collected:
    """The last attempt at each trial of a stage, the default's drift and the noise among them.

    `replicates` counts the trials of configurations that were chosen to be measured again; the
    default's sentinels are not among them. `noise` is that of these configurations, and
    `default_noise` that of the default, which may be another. `replicas` says whether the replicas
    of the cluster agree, None where there is only one. Not stored: the trials are.
    """

    trials: tuple[Trial, ...]
    replicates: int
    drift: Drift
    noise: Noise
    default_noise: Noise
    replicas: Agreement | None = None
