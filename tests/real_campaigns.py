"""Campaigns on real labs, within the test's own process."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

from intop.config.study import Study
from intop.hosts.ssh import connect
from intop.report.progress import LineProgress
from intop.run.campaigns import new
from intop.run.context import Context
from intop.store import opened


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
        )
