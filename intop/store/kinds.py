"""The names of results in the store: they are their own, so that a class can be renamed."""

from collections.abc import Mapping

from intop.domain.across import Across
from intop.domain.agreement import Agreement
from intop.domain.baseline import Refusals
from intop.domain.explanation import Explanation, Promised
from intop.domain.mediation import Mediation
from intop.domain.multi_arm import Compromise, Contest, Crosswise
from intop.domain.pareto import Front
from intop.domain.pilot import Pilot
from intop.domain.probing import Probe
from intop.domain.ranking import Ranking
from intop.domain.refined import Decisions, Refined
from intop.domain.rollout import Rollout
from intop.domain.search import Search
from intop.domain.soak import Soak
from intop.domain.sweep import Sweeps
from intop.domain.training import Training
from intop.domain.verdict import Verdict

KINDS: Mapping[type, str] = {
    Across: "across",
    Agreement: "agreement",
    Compromise: "compromise",
    Contest: "contest",
    Crosswise: "crosswise",
    Decisions: "decisions",
    Explanation: "explanation",
    Front: "front",
    Mediation: "mediation",
    Pilot: "pilot",
    Probe: "probe",
    Promised: "promised",
    Ranking: "ranking",
    Refined: "refined",
    Refusals: "refusals",
    Rollout: "rollout",
    Search: "search",
    Soak: "soak",
    Sweeps: "sweeps",
    Training: "training",
    Verdict: "verdict",
}
"""Never change a name that a store may have, but by a migration."""
