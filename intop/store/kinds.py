"""What results are called in the store: names of their own, so that a class can be renamed."""

from collections.abc import Mapping

from intop.domain.agreement import Agreement
from intop.domain.baseline import Refusals
from intop.domain.explanation import Explanation
from intop.domain.front import Front
from intop.domain.probing import Probe
from intop.domain.refined import Decisions, Refined
from intop.domain.results import Contest, Pilot, Ranking, Search, Searches, Training, Verdict
from intop.domain.rollout import Rollout
from intop.domain.transfer import Compromise, Crosswise

KINDS: Mapping[type, str] = {
    Agreement: "agreement",
    Compromise: "compromise",
    Contest: "contest",
    Crosswise: "crosswise",
    Decisions: "decisions",
    Explanation: "explanation",
    Front: "front",
    Pilot: "pilot",
    Probe: "probe",
    Ranking: "ranking",
    Refined: "refined",
    Refusals: "refusals",
    Rollout: "rollout",
    Search: "search",
    Searches: "searches",
    Training: "training",
    Verdict: "verdict",
}
"""Never change a name that a store may have, but by a migration."""
