"""The one deployment that is exported."""

from intop.deploy.deployable import deployments, task_of
from intop.domain.deployment import Deployment
from intop.domain.nginx.directive import NginxFacts
from intop.domain.nginx.standing import Directives
from intop.domain.probing import Probe
from intop.errors import UsageError
from intop.run.context import Context


def nginx_of(context: Context, deployment: Deployment) -> tuple[Directives, NginxFacts]:
    """The study's catalogue of directives, and what the nginx was that they were measured on.

    Raises UsageError where the campaign has looked at no nginx.
    """
    task = task_of(context, deployment)
    probe = task.store.get(task.subject, Probe)
    if probe is None or probe.nginx is None:
        raise UsageError(f"{deployment.title}: the campaign has tuned no directive of nginx")
    return context.study.directives, probe.nginx.facts


def sole_deployment(
    context: Context, *, whole: bool = False, accept_costs: bool = False
) -> Deployment | None:
    """What there is to deploy in the context; None: keep the defaults. Reads only the store.

    `whole` and `accept_costs` as in `deployments`.

    Raises UsageError where several architectures have a gain, ResultMissingError where none has a
    verdict.
    """
    found = deployments(context, whole=whole, accept_costs=accept_costs)
    gains = {arch: deployment for arch, deployment in found.items() if deployment is not None}
    if len(gains) > 1:
        raise UsageError(
            f"{' and '.join(gains)} have a gain each, with other values. Export one at a time: "
            f"--arch {next(iter(gains))}"
        )
    for arch in found.keys() - gains.keys():
        context.progress.say(f"{arch}: no gain: keep the defaults there")
    return next(iter(gains.values()), None)
