"""A soak on a real lab: of what is applied, killed and resumed, and given back at a limit."""

import signal
from collections.abc import Callable
from contextlib import closing

from intop.domain.cluster import native_arch
from intop.domain.configuration import Configuration
from intop.hosts import ssh
from intop.hosts.guard import guarded
from intop.lab.cluster import cluster
from kit.studies import Study, wait_for

FIN = "net.ipv4.tcp_fin_timeout"
ABOUT = {
    "since": "2026-11-25T00:00:00Z",
    "study": "small",
    "campaign": "3",
    "arch": "x86",
    "workload": "slt",
}
SOAK = ("soak", "--workload", "slt", "--hours", "0.0025", "--block-s", "1")
"""Nine blocks."""


def test_what_is_applied_is_soaked_through_a_kill_and_given_back_at_a_limit(
    make_study: Callable[..., Study],
) -> None:
    study = make_study(native_arch())
    address = cluster(study.labs[0]).load_balancer
    with closing(ssh.connect(address)) as host, guarded(host, [FIN], originals=True) as session:
        session.keep(Configuration({FIN: "31"}), ABOUT)

    def value() -> str:
        return study.balancer(f"sysctl -n {FIN}").strip()

    def nginx() -> str:
        return study.balancer(f"cat /run/intop/lab/{study.labs[0]}/host-lb/nginx.pid")

    began = nginx()
    process = study.start(*SOAK)
    wait_for(lambda: len(study.trials("soak")) >= 3, "three blocks")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = study.trials("soak")
    # Within seconds a few connections more look like a leak.
    result = study.json(*SOAK, expected=(0, 3))[f"{native_arch()} slt"]

    assert before == study.trials("soak")[: len(before)]
    assert list(range(9)) == [place for place, _, _ in study.trials("soak")]
    assert result["applied"] == "x86 slt of study small, campaign 3, since 2026-11-25T00:00:00Z"
    assert ("31", began) == (value(), nginx())
    assert (address.name, 9, 0, []) == (
        result["host"],
        len(result["blocks"]),
        result["restarts"],
        result["changed"],
    )
    assert all(b["nginx_memory_mib"] > 1 and b["nginx_files"] > 5 for b in result["blocks"])
    assert all(b["p99_ms"] > 0 and b["achieved_rps"] > 200 for b in result["blocks"])
    assert {"P99", "nginx memory", "nginx files", "host memory"} <= {
        one["quantity"] for one in result["trends"]
    }

    limit = ("--limit-ms", "0.001", "--in-a-row", "1", "--on-limit", "roll-back")
    out, err = study.run(*SOAK, *limit, expected=(3,))
    assert "ended early, P99 above" in out
    assert f"{address.name}: " in err
    assert ("60", began) == (value(), nginx())
    assert len(study.trials("soak")) == 9
