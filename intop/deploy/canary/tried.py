"""The latest canary as a condition of `intop apply --after-canary`."""

from intop.deploy.canary.opening import WHEN_LISTENING
from intop.deploy.canary.view import canary_sentence
from intop.deploy.deployable import task_of
from intop.domain.canary import Canary
from intop.domain.deployment import Deployment
from intop.errors import UsageError
from intop.run.context import Context


def check_tried(context: Context, deployment: Deployment) -> None:
    """Say which canary counts.

    Raises UsageError unless the latest canary of these very values is a gain that may stay.
    """
    task = task_of(context, deployment)
    latest = task.store.get(task.subject, Canary)
    if latest is None or latest.configuration.values != deployment.values:
        if keys := [key for key in deployment.values if key in WHEN_LISTENING]:
            raise UsageError(
                f"{deployment.title}: no canary can try {', '.join(keys)}, which needs a restart "
                "of nginx. To apply the values all the same, leave --after-canary out"
            )
        raise UsageError(
            f"{deployment.title}: no canary has tried these values, or another one came after it. "
            "Run: intop canary"
        )
    if not latest.may_stay:
        raise UsageError(
            f"{deployment.title}: the canary of these values says {canary_sentence(latest)}. To "
            "apply them all the same, leave --after-canary out"
        )
    last = max((trial.started_at for trial in task.trials("canary")), default="an unknown time")
    context.progress.say(
        f"{deployment.title}: the canary on {', '.join(latest.hosts)} counts, whose last block "
        f"began at {last}, by a margin of {latest.margin:g}"
    )
