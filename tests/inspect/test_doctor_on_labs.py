"""A doctor on real clusters that are not as they should be."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from builders.trials import trial
from intop.config.study import load_study
from intop.document.progress import LineProgress
from intop.domain.configuration import DEFAULT, Configuration
from intop.errors import IncomparableError
from intop.hosts.guard import guarded
from intop.hosts.ssh import connect
from intop.inspect.doctor import examine
from intop.lab.content import static_paths
from intop.run.cluster_testbed import ClusterTestbed
from intop.run.context import Task
from intop.run.opening import cluster_testbed
from intop.run.replicas import check_alike, in_common
from kit.real_campaigns import contexts

READ_ONLY = "mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys"

WRITABLE_AGAIN = "umount /proc/sys"

WITHOUT_SOME = "mount -t tmpfs none /proc/sys/net/ipv6/route"

ALL_AGAIN = "umount /proc/sys/net/ipv6/route"

OVER_ANOTHER = "mount --bind /proc/sys/vm/dirty_bytes /proc/sys/net/ipv4/tcp_fin_timeout"
"""Its own value, 0, is one that the kernel does not take."""

ITSELF_AGAIN = "umount /proc/sys/net/ipv4/tcp_fin_timeout"

GONE = [
    f"net.ipv6.route.{name}"
    for name in ("gc_elasticity", "gc_interval", "gc_min_interval_ms", "gc_thresh", "gc_timeout")
] + ["net.ipv6.route.mtu_expires"]


@dataclass
class Lab:
    """Two replicas on this machine."""

    study: Any

    def on_balancer(self, number: int, command: str) -> None:
        """As its sshd sees the balancer, and whatever that starts: mounts are for those only."""
        name = self.study.labs[number]
        pid = Path(f"/run/intop/lab/{name}/host-lb/sshd.pid").read_text().strip()
        inside = ["nsenter", "--mount", "--net", "--target", pid, "sh", "-c", command]
        subprocess.run(inside, check=True, timeout=20)

    def names(self) -> list[str]:
        return [f"{name}-lb" for name in self.study.labs]


@pytest.fixture
def lab(make_study: Callable[..., Any]) -> Lab:
    return Lab(make_study("x86", replicas=2))


@pytest.fixture
def task(lab: Lab) -> Iterator[Task]:
    study = load_study(lab.study.folder / "intop.toml")
    with contexts(study, lab.study.folder) as context:
        yield next(task for task in context.subjects() if task.workload.name == "slt")


def in_use(task: Task) -> tuple[list[ClusterTestbed], str]:
    """The testbeds that a stage would measure on, and what was said meanwhile."""
    message = StringIO()
    task = replace(task, context=replace(task.context, progress=LineProgress(message)))
    with ExitStack() as stack:
        ready = [stack.enter_context(cluster_testbed(task, n)) for n in (0, 1)]
        check_alike(task, *ready)
        return in_common(ready), message.getvalue()


@contextmanager
def held(task: Task, number: int) -> Iterator[None]:
    """As a campaign holds a load balancer."""
    host = connect(task.clusters()[number].load_balancer)
    try:
        with guarded(host, ["net.core.somaxconn"]):
            yield
    finally:
        host.close()


def keys_of(one: ClusterTestbed) -> list[str]:
    return [p.key for p in one.probed.space.parameters]


@pytest.mark.parametrize(
    ("command", "problem", "warning"),
    [
        ("echo no such unit >&2; exit 5", "which said: no such unit", ""),
        ("true", "", "still listens on the socket from before: `true` does not open it anew"),
    ],
)
def test_a_restart_that_does_not_work_is_found_before_a_campaign(
    task: Task, command: str, problem: str, warning: str
) -> None:
    cluster = replace(task.clusters()[0], server_restart=command)
    for writes in (False, True):
        (diagnosis,) = examine([cluster], task.context.study, connect, writes=writes)
        for said, wanted in ((diagnosis.problems, problem), (diagnosis.warnings, warning)):
            assert any(wanted in line for line in said if wanted) == bool(writes and wanted), said


def test_a_real_cluster_that_is_not_as_it_should_be(
    lab: Lab, task: Task, machine_sysctls: Callable[[], dict[str, str]]
) -> None:
    catalogue = {p.key for p in task.context.study.catalogue.parameters}
    before = {key: value for key, value in machine_sysctls().items() if key in catalogue}
    here, there = lab.study.json("doctor")
    assert [] == here["problems"] == there["problems"]
    everything = here["offered"]
    assert len(everything) > 100
    assert set(GONE) < set(everything)
    out, _ = lab.study.run("doctor", "--write-test", "--details")
    count = len(everything)
    for name in lab.names():
        assert f"{name}: {count} of {count} keys took their own values when written" in out
    assert out.count("out of bounds: the same as above") == 1
    # Of which each path has a line in each cluster's table.
    assert sum("/" in line.split()[0] for line in out.splitlines() if line.split()) == 2 * 25
    assert len(out.splitlines()) < 55 + 2 * 29
    assert len(lab.study.run("doctor")[0].splitlines()) < 25

    # A host that is held is left alone, and says by whom.
    with held(task, 0):
        out, _ = lab.study.run("doctor", "--write-test")
    assert f"{lab.names()[0]}: held by " in out
    assert f"WARNING  {lab.names()[0]}: is held, so nothing was written there" in out
    assert f"{lab.names()[1]}: {count} of {count} keys took" in out

    lab.on_balancer(1, READ_ONLY)
    here, there = lab.study.json("doctor", expected=(1,))
    assert [] == here["offered"] == there["offered"]
    reason = "can't be written: /proc/sys is mounted read-only, as in a container"
    assert {reason} == {there["refused"][key] for key in everything}
    assert {here["refused"][key] for key in everything} == {
        f"not on all replicas: on {lab.names()[1]}, {reason}"
    }
    assert there["problems"] == [f"{lab.names()[1]}: offers none of the catalogue's parameters"]
    lab.on_balancer(1, WRITABLE_AGAIN)

    # A key with the same value on both, which one of them does not take again.
    lab.on_balancer(1, OVER_ANOTHER)
    lab.on_balancer(0, OVER_ANOTHER.replace("dirty_bytes", "dirty_background_bytes"))
    lab.on_balancer(1, WITHOUT_SOME)
    here, there = lab.study.json("doctor", "--write-test")
    lost = {*GONE, "net.ipv4.tcp_fin_timeout"}
    assert lost == set(everything) - set(here["offered"]) == set(everything) - set(there["offered"])
    refusal = "can't be written: the kernel refuses its own value, Invalid argument"
    assert refusal == there["refused"]["net.ipv4.tcp_fin_timeout"]

    # And so it is in a campaign, from the first trial on.
    ready, output = in_use(task)
    assert [sorted(set(everything) - lost)] * 2 == [sorted(keys_of(one)) for one in ready]
    assert f"x86 slt: {GONE[0]} is left out: not on all replicas: on {lab.names()[1]}, " in output
    assert "parameters can be tuned, and " in output
    assert f"x86 slt: net.ipv4.tcp_fin_timeout is left out: {refusal}" in output

    # Once there are trials, the space is what it was, and a host that offers another is refused.
    once = Configuration({"net.ipv4.tcp_adv_win_scale": "2"})
    made = [
        replace(trial(configuration, index=n), conditions=ready[0].conditions)
        for n, configuration in enumerate((DEFAULT, once))
    ]
    task.store.write_plan(task.subject, "collect", [made[0].planned])
    task.store.add(task.subject, made[0])
    again, output = in_use(task)
    assert [keys_of(one) for one in ready] == [keys_of(one) for one in again]
    assert output == ""
    lab.on_balancer(0, WITHOUT_SOME)
    with pytest.raises(IncomparableError, match=r"(?s)gc_elasticity: \d+ against missing.*--new"):
        in_use(task)
    lab.on_balancer(0, ALL_AGAIN)
    # So is one whose plan tunes a key that is known by now to have no effect.
    task.store.write_plan(task.subject, "collect", [made[1].planned])
    with pytest.raises(IncomparableError, match=r"tcp_adv_win_scale: tuned against left out, has"):
        in_use(task)
    lab.on_balancer(1, ALL_AGAIN)
    lab.on_balancer(1, ITSELF_AGAIN)
    lab.on_balancer(0, ITSELF_AGAIN)
    assert before.items() <= machine_sysctls().items()


def test_paths_that_do_not_answer_on_a_real_cluster(lab: Lab) -> None:
    lost, name = static_paths()[3], lab.study.labs[1]
    page = Path(f"/run/intop/lab/{name}/content{lost}")
    elsewhere = page.with_name("elsewhere")
    # Before anybody asked for it: nginx remembers for a minute what it has found.
    page.rename(elsewhere)
    out, _ = lab.study.run("doctor", expected=(1,))
    assert f"PROBLEM  {name}-lg: {lost}: answers 404: correct the path in the study" in out
    assert out.count("PROBLEM") == 1
    # Nor does a campaign begin.
    _, output = lab.study.run("collect", "--workload", "slt", expected=(1,))
    assert f"PROBLEM  {name}-lg: {lost}: answers 404" in output
    assert "the cluster is not ready, and nothing was written to any host" in output
    assert lab.study.trials("replicas") == []

    elsewhere.rename(page)
    for one in lab.study.json("doctor"):
        assert one["problems"] == []
        assert len(one["fetched"]) == 25
        assert {(path["status"], path["problem"]) for path in one["fetched"]} == {(200, "")}
        assert all(path["bytes"] > 0 and path["seconds"] > 0 for path in one["fetched"])


def test_an_nginx_whose_sockets_are_not_those_that_are_tuned(lab: Lab) -> None:
    name = lab.study.labs[0]
    folder = f"/run/intop/lab/{name}/host-lb"
    stop = f"kill $(cat {folder}/nginx.pid); while [ -e {folder}/nginx.pid ]; do sleep 0.02; done"
    start = f"nginx -e {folder}/nginx.log -c {folder}/nginx.conf"
    lab.on_balancer(0, f"{stop}; unshare --net {start}")
    here, there = lab.study.json("doctor", expected=(1,))
    assert there["problems"] == []
    # Its lab's network leads to the namespace that nginx has left.
    elsewhere, refused = sorted(here["problems"], key=lambda line: "refused" in line)
    assert f"{name}-lb: nothing listens on port 80 in the network namespace" in elsewhere
    assert "the connection is refused" in refused
    lab.on_balancer(0, f"{stop}; sh {folder}/server-restart")
    assert [one["problems"] for one in lab.study.json("doctor")] == [[], []]
