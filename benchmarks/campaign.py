"""What benchmarks on a lab have in common: a campaign with one thing to tune."""

from intop.config.study import Study
from intop.hosts import ssh
from intop.hosts.host import Connect
from intop.report.progress import LineProgress
from intop.run.campaigns import new
from intop.run.context import Context, Task
from intop.store import Store


def begun(store: Store, study: Study, connect: Connect = ssh.connect) -> Task:
    """A campaign of its own, of a study with one architecture and one workload."""
    context = Context(
        study=study,
        store=store,
        campaign=new(store, study),
        connect=connect,
        progress=LineProgress(),
        archs=tuple(study.clusters),
        workloads=tuple(study.workloads.values()),
    )
    (task,) = context.subjects()
    return task
