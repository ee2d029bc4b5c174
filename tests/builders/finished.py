"""A finished campaign on a real lab, without its hours of measurements."""

from dataclasses import replace

from intop.config.study import load_study
from intop.document.progress import LineProgress
from intop.domain.cluster import native_arch
from intop.domain.verdict import Verdict
from intop.hosts.host import Connect
from intop.hosts.ssh import connect
from intop.run.campaigns import new
from intop.run.context import Context, Task
from intop.run.opening import cluster_testbed
from intop.store import Subject, opened
from kit.studies import Study

STUDY = """
[study]
name = "small"
store = "small.db"
{clusters}
[workload.slt]
rate_rps = 150
connections = 64
threads = 2
duration_s = 1
warmup_s = 0

[budget]
max_foreign_cores = 1000    # the machine that runs the tests may have other work
max_steal_cores = 1000
max_steal = 0.99
max_load_cpu = 1
max_lag = 1
settle_limit_s = 5
level = 0.9999              # two rounds by chance alike must not make a deployment worse

[guardrails]                # which tests/deploy/test_apply.py has
p50_times = false
rate_times = false
error_points = false
slow_points = false
cpu_points = false
cpu_times = false
memory_mib = false
memory_times = false
"""


def finish_campaign(study: Study, verdict: Verdict, connect: Connect = connect) -> None:
    """The host as it is probed, and a verdict, as tune leaves them."""
    loaded = load_study(study.folder / "intop.toml")
    loaded = replace(loaded, store=str(study.folder / "small.db"))
    with opened(loaded.store) as store:
        subject = Subject(
            campaign=store.latest("small") or new(store, loaded),
            arch=native_arch(),
            workload="slt",
        )
        context = Context(
            study=loaded,
            store=store,
            campaign=subject.campaign,
            connect=connect,
            progress=LineProgress(),
            archs=(subject.arch,),
            workloads=(loaded.workloads["slt"],),
        )
        with cluster_testbed(
            Task(context=context, subject=subject, workload=loaded.workloads["slt"])
        ):
            pass
        store.put(subject, verdict)
