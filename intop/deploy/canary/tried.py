"""The latest canary as a condition of `intop apply --after-canary`."""

from intop.deploy.canary.view import canary_sentence
from intop.deploy.deployable import task_of
from intop.domain.canary import Canary
from intop.domain.deployment import Deployment
from intop.errors import UsageError
from intop.run.context import Context


def check_tried(context: Context, deployment: Deployment) -> None:
    """Raises UsageError unless the latest canary of these very values is a gain that may stay."""
    task = task_of(context, deployment)
    latest = task.store.get(task.subject, Canary)
    if latest is None or latest.configuration.values != deployment.values:
        raise UsageError(
            f"{deployment.title}: no canary has tried these values, or another one came after it. "
            "Run: intop canary"
        )
    if not latest.may_stay:
        raise UsageError(
            f"{deployment.title}: the canary of these values says {canary_sentence(latest)}. To "
            "apply them all the same, leave --after-canary out"
        )
