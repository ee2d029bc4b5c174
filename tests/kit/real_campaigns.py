"""Campaigns on real labs, within the test's own process."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

from intop.config.study import Study
from intop.document.progress import LineProgress
from intop.domain.configuration import DEFAULT
from intop.domain.trial import PlannedTrial, Trial
from intop.hosts.ssh import connect
from intop.inspect.doctor import check_ready
from intop.run.campaigns import new
from intop.run.cluster_testbed import ClusterTestbed
from intop.run.context import Context
from intop.store import opened

BASELINE = PlannedTrial(index=0, role="baseline", configuration=DEFAULT)


@contextmanager
def contexts(study: Study, folder: Path) -> Iterator[Context]:
    with opened(str(folder / "own.db")) as store:
        yield Context(
            study=study,
            store=store,
            campaign=new(store, study),
            connect=connect,
            progress=LineProgress(StringIO()),
            archs=("x86",),
            workloads=tuple(study.workloads.values()),
            check_ready=check_ready,
        )


def undisturbed(ready: ClusterTestbed, attempts: int = 10) -> Trial:
    """A trial that is measured again while it is disturbed, by the machine's other work."""
    for attempt in range(attempts):
        trial = ready.trial(BASELINE, "collect", attempt)
        if trial.status != "disturbed":
            break
    return trial
