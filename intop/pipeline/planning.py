"""plan: what deploying would change on the tuned hosts. Only reads there, and changes nothing."""

from collections.abc import Mapping, Sequence

from intop.domain.answer import Answer
from intop.domain.cluster import MACHINES, HostAddress
from intop.domain.deployment import Deployment
from intop.domain.parameter import Parameter
from intop.domain.persistent import our_file
from intop.domain.plan import HostPlan, Plan, planned_key
from intop.domain.probing import MISSING, Probe, Reading, asked_keys, why_not_set
from intop.errors import UsageError
from intop.hosts import guard, sysctl
from intop.hosts.facts import facts
from intop.hosts.host import Host
from intop.hosts.persistent import read_persistent
from intop.pipeline.context import Context
from intop.pipeline.deploying import known_deployments
from intop.pipeline.host_states import ask_all, tuned_hosts


def plan(
    context: Context, *, whole: bool = False, hosts: Sequence[HostAddress] = ()
) -> dict[str, Plan | None]:
    """The plan of each architecture that has a verdict; None: keep the defaults.

    `hosts` stand in place of the study's. A host that can't be asked has its error in its place.
    Raises ResultMissingError without any verdict, UsageError where it is not clear what `hosts` are
    to get.
    """
    found = known_deployments(context, whole=whole)
    gains = [arch for arch, deployment in found.items() if deployment is not None]
    if hosts and len(gains) > 1:
        raise UsageError(
            f"{' and '.join(gains)} have a gain, with values of their own: say with --arch which "
            "of them the hosts of --host are to get"
        )
    return {
        arch: None if deployment is None else _plan(context, deployment, hosts)
        for arch, deployment in found.items()
    }


def _plan(context: Context, deployment: Deployment, hosts: Sequence[HostAddress]) -> Plan:
    known = {p.key: p for p in context.study.catalogue.parameters}
    parameters = {key: known[key] for key in deployment.values if key in known}
    missing: list[Answer[HostPlan]] = []
    if not hosts:
        hosts, absent = tuned_hosts(context.study, deployment.arch, context.progress.say)
        missing = [Answer(name=answer.name, error=answer.error) for answer in absent]
    answers = ask_all(hosts, context.connect, lambda host: host_plan(host, deployment, parameters))
    return Plan(deployment=deployment, hosts=(*missing, *answers))


def host_plan(host: Host, deployment: Deployment, parameters: Mapping[str, Parameter]) -> HostPlan:
    """What deploying would change on one host; `parameters` by key. Raises HostError."""
    asked = dict.fromkeys([*deployment.values, *asked_keys(parameters.values())])
    probe = Probe(facts=facts(host), readings=sysctl.probe(host, list(asked)))
    persistent = read_persistent(host)
    file = our_file(host.address.config_root)
    keys = []
    for change in deployment.changes:
        reading = probe.readings.get(change.key, MISSING)
        obstacle = (
            why_not_set(parameters[change.key], change.value, probe)
            if change.key in parameters
            else _why_not_written(reading)
        )
        now = reading.value if reading.has_value else None
        keys.append(planned_key(change, now, obstacle, persistent, file))
    notes = [*_elsewhere(deployment, probe), *_held(host), *persistent.problems]
    return HostPlan(file=file, keys=tuple(keys), notes=tuple(notes))


def _why_not_written(reading: Reading) -> str:
    """Of a key that is no longer in the catalogue."""
    if reading.access == "writable":
        return ""
    return "this kernel doesn't have it" if reading.access == "missing" else "can't be written"


def _elsewhere(deployment: Deployment, probe: Probe) -> list[str]:
    machine = probe.facts.machine
    if machine in MACHINES.get(deployment.arch, (machine,)):
        return []
    told = f"its machine is {machine}, and the gain was measured on {deployment.arch}"
    return [f"{told}: measure there before you deploy there"]


def _held(host: Host) -> list[str]:
    if not guard.is_held(host):
        return []
    return ["an intop session holds it (intop status), and what it has now may be that session's"]
