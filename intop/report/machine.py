"""Results as JSON, for programs."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from intop.domain.across import Across, UnderWorkload
from intop.domain.advice import Change
from intop.domain.agreement import Agreement
from intop.domain.campaign_status import CampaignStatus, StageStatus, SubjectStatus
from intop.domain.comparison import Contrast
from intop.domain.deployment import Deployment
from intop.domain.dry_run import Intended
from intop.domain.evidence import Evidence
from intop.domain.guardrails import Guardrail
from intop.domain.multi_arm import Contestant
from intop.domain.plan import Plan, PlannedKey
from intop.domain.ranking import RankAgreement
from intop.domain.soak import Soak, Trend
from intop.domain.speedups import SpeedUps
from intop.domain.sweep import ArmAt, Sweep
from intop.domain.sysctl_file import plain_values
from intop.domain.training import Training
from intop.domain.trial import Trial
from intop.domain.verdict import SideBySide, Verdict
from intop.masking import masked, masked_header
from intop.version import __version__

SCHEMA = 1
"""Version of an exported deployment: grows when a field is renamed or taken away."""

COMPUTED: Mapping[type, tuple[str, ...]] = {
    Across: ("reference", "is_gain"),
    Change: ("winners", "gains", "by_itself", "beside_others"),
    Evidence: ("outcome_by_itself", "outcome_beside_others"),
    ArmAt: ("outcome",),
    CampaignStatus: ("left_s",),
    Contestant: ("outcome",),
    Contrast: ("outcome",),
    Guardrail: ("state",),
    Intended: ("left", "left_s"),
    Plan: ("problems",),
    PlannedKey: ("outcome",),
    RankAgreement: ("chosen_by_both",),
    SideBySide: ("untold",),
    SpeedUps: ("best",),
    StageStatus: ("left",),
    SubjectStatus: ("left_s",),
    Soak: ("leak", "hours", "load_share"),
    Sweep: ("reference",),
    Trend: ("growth",),
    Training: ("best", "is_at_ceiling"),
    UnderWorkload: ("outcome", "harms"),
    Verdict: ("outcome",),
}
"""Properties of results that programs get beside the fields."""


def to_json(value: Any) -> str:
    """Any result, or a mapping or list of results, as indented JSON."""
    return json.dumps(_plain(value), indent=2, ensure_ascii=False)


def _plain(value: Any, name: str = "") -> Any:
    """Return what JSON can have of a value that is called `name`."""
    if isinstance(value, Trial):
        return _plain(_trial(value))
    if is_dataclass(value) and not isinstance(value, type):
        names = (*value.__dataclass_fields__, *COMPUTED.get(type(value), ()))
        plain = {each: _plain(getattr(value, each), each) for each in names}
        if isinstance(value, Agreement):
            plain["in_use"] = [value.replicas[n].name for n in value.in_use]
        return plain
    if isinstance(value, dict):
        return {str(key): _plain(item, str(key)) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(item, name) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no word for it
    if not isinstance(value, str):
        return value
    return masked_header(value) if name == "headers" else masked(value)


def _trial(trial: Trial) -> dict[str, Any]:
    """A trial with its percentiles in place of the histogram."""
    percentiles = (
        {f"p{percent:g}_ms": trial.percentile_ms(percent) for percent in (50, 90, 99, 99.9)}
        if trial.histogram
        else {}
    )
    return {
        "stage": trial.stage,
        "index": trial.planned.index,
        "attempt": trial.attempt,
        "replica": trial.replica,
        "role": trial.planned.role,
        "configuration": dict(trial.configuration.values),
        "digest": trial.configuration.digest,
        "status": trial.status,
        "detail": trial.detail,
        "started_at": trial.started_at,
        "seconds": trial.seconds,
        "judged_p99_ms": trial.p99_ms if trial.histogram else None,
        "pruned_above_ms": trial.pruned_above_ms,
        **percentiles,
        "achieved_rps": trial.achieved_rps,
        "errors": dict(trial.errors),
        "metrics": {name: asdict(m) for name, m in trial.metrics.items()},
        "conditions": asdict(trial.conditions),
    }


def deployment_json(deployment: Deployment, *, written_at: str) -> str:
    """Return an exported deployment: provenance, values by key, each change and the verdict.

    Raises UsageError as the other formats do, so that they have the same values.
    """
    fields = {name: getattr(deployment, name) for name in deployment.__dataclass_fields__}
    return to_json(
        {
            "written_by": f"intop {__version__}",
            "written_at": written_at,
            "schema": SCHEMA,
            "values": {**plain_values(deployment), **deployment.directives},
            **fields,
        }
    )
