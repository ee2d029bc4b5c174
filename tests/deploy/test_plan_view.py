"""A plan as text and as Markdown, from hand-made ones."""

import json
from dataclasses import replace
from typing import Any

import pytest

from builders.results import ACROSS, CAUSES, COSTLY, DEPLOYMENT, DOUBTED, SWEEP
from intop.deploy.plan_view import sections, worth
from intop.deploy.result import HostPlan, Plan, planned_key, problems_of
from intop.document.machine import to_json
from intop.document.markdown import as_markdown, code, escaped
from intop.domain.applied import Applied
from intop.domain.deployment import Origin
from intop.domain.explanation import Contribution, Kept
from intop.domain.host_state import Answer, HostState
from intop.domain.persistent import FILES, TUNED, TUNED_LAST, Persistent, Setting, our_file
from intop.domain.stats import Interval
from kit.golden import Golden
from kit.printed import shown

RMEM, SOMAXCONN = DEPLOYMENT.changes
LONGEST = "net.netfilter.nf_conntrack_tcp_timeout_unacknowledged"
FILE = our_file("/")


def conf(key: str, name: str, value: str) -> Setting:
    return Setting(key, value, f"/etc/sysctl.d/{name}:3", (FILES, name))


PERSISTENT = Persistent(
    settings=(
        conf(SOMAXCONN.key, "10-web.conf", "1024"),
        conf(RMEM.key, "99-zzz.conf", "4096 8192 16384"),
    ),
    on_reload=(Setting(SOMAXCONN.key, "128", "/etc/sysctl.conf:9"),),
)
KEYS = (
    planned_key(RMEM, "4096 131072 33554432", "", PERSISTENT, FILE, known=["1 1 1"]),
    planned_key(SOMAXCONN, SOMAXCONN.value, "", PERSISTENT, FILE),
    planned_key(
        replace(RMEM, key=LONGEST, value="60", default="300"), None, "can't be", Persistent(), FILE
    ),
)
HOST = HostPlan(file=FILE, keys=KEYS, notes=("a note",))
PLAN = Plan(
    deployment=DEPLOYMENT,
    rounds=10,
    hosts=(Answer(name="lb", result=HOST), Answer(name="gone", error="gone: the network is gone")),
)


def text(capsys: pytest.CaptureFixture[str], plan: Plan | None = PLAN) -> str:
    return shown(capsys, *sections({"x86": plan}))


def test_a_baseline_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    verdict = replace(DEPLOYMENT.verdict, origin="ubuntu-18.04")
    deployment = replace(DEPLOYMENT, origin="baseline", verdict=verdict)
    assert "2 keys, the baseline ubuntu-18.04, of study lab" in " ".join(
        text(capsys, replace(PLAN, deployment=deployment)).split()
    )


def test_a_plan_is_readable_at_100_columns(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    out = text(capsys)
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 100
    golden(out)


def steps(capsys: pytest.CaptureFixture[str], *hosts: HostPlan, **changes: Any) -> str:
    answers = tuple(Answer(name=f"lb{n}", result=host) for n, host in enumerate(hosts, start=1))
    return " ".join(text(capsys, replace(PLAN, hosts=answers, **changes)).split())


def test_what_apply_does_on_each_host_is_said(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    able = HostPlan(file=FILE, keys=KEYS[:2])
    done, held = replace(HOST, has_it=True), replace(HOST, problems=("is held by me",))
    output = steps(capsys, able, replace(able, notes=()), done, held)
    golden(output)
    assert output.count("apply: ") == 3
    golden(steps(capsys, able, persist=True))
    golden(steps(capsys, able, for_review=True))
    output = steps(capsys, replace(able, lacks_file=True), persist=True)
    assert f"apply: it has these values already; write {FILE} for later boots" in output


def test_the_hosts_own_value_counts_where_something_is_applied(
    capsys: pytest.CaptureFixture[str],
) -> None:
    left = planned_key(SOMAXCONN, "128", "", Persistent(), FILE, SOMAXCONN.default)
    assert "was not measured" not in steps(capsys, HostPlan(file=FILE, keys=(left,)))
    other = replace(left, before="512")
    assert "this host has 512" in steps(capsys, HostPlan(file=FILE, keys=(other,)))


def test_no_gain_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "x86: no verdict is a gain: there is nothing" in text(capsys, None)
    assert "## x86: no verdict is a gain: there is nothing" in as_markdown(sections({"x86": None}))


def test_the_reason_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    known = replace(DEPLOYMENT, verdict=replace(DEPLOYMENT.verdict, causes=CAUSES))
    output = " ".join(text(capsys, replace(PLAN, deployment=known)).split())
    assert "less of syn-backlog (TcpExt.ListenDrops 51.2 to 0 a trial)" in output


def test_what_p99_does_not_say_is_noted(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    output = text(capsys)
    golden(output)
    whole = replace(DEPLOYMENT, verdict=DOUBTED, sweeps=(SWEEP,))
    output = text(capsys, replace(PLAN, deployment=whole))
    golden(output)
    smaller = replace(whole, origin="smallest set")
    output = " ".join(text(capsys, replace(PLAN, deployment=smaller)).split())
    assert "the whole winner at other rates: tuned gain at 50" in output
    output = " ".join(text(capsys, replace(PLAN, deployment=replace(whole, across=ACROSS))).split())
    assert "NOTE winner under 4 workloads: gain in 1, worse in 3; worse here: api (CPU" in output
    costly = replace(DEPLOYMENT, verdict=COSTLY)
    output = " ".join(text(capsys, replace(PLAN, deployment=costly, accept_costs=True)).split())
    assert "COSTS CPU is higher by 12 points (9 to 15; accepted: 5): --accept-costs was" in output


def test_tuned_and_our_earlier_file_are_named(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    place = "TuneD profile web, /etc/tuned/web/tuned.conf:4"
    results = Persistent(
        settings=(
            Setting(SOMAXCONN.key, "7", f"{FILE}:2", (FILES, FILE.rpartition("/")[2])),
            Setting(SOMAXCONN.key, "1024", place, (TUNED, "")),
        )
    )
    applied = Applied(about={}, keys=(), file=FILE)
    keys = (planned_key(SOMAXCONN, "4096", "", results, FILE, known=["1"]),)
    host = HostPlan(file=FILE, keys=keys, applied=applied)
    output = text(capsys, replace(PLAN, hosts=(Answer(name="lb", result=host),)))
    golden(output)
    late = Persistent(settings=(Setting(SOMAXCONN.key, "1024", place, (TUNED_LAST, "")),))
    host = replace(host, keys=(planned_key(SOMAXCONN, "4096", "", late, FILE, known=["1"]),))
    output = " ".join(text(capsys, replace(PLAN, hosts=(Answer(name="lb", result=host),))).split())
    assert f"and wins: take it out of the profile, or let it set {SOMAXCONN.value}" in output
    results = Persistent(settings=(conf(SOMAXCONN.key, "1.conf", SOMAXCONN.value),))
    host = HostPlan(file=FILE, keys=(planned_key(SOMAXCONN, "4096", "", results, FILE),))
    output = text(capsys, replace(PLAN, hosts=(Answer(name="lb", result=host),)))
    assert "/etc/sysctl.d/1.conf:3 sets the same value already" in output


def test_a_file_of_our_name_that_no_apply_wrote_is_not_called_ours(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    foreign = Setting(SOMAXCONN.key, "7", f"{FILE}:2", (FILES, FILE.rpartition("/")[2]))
    persistent = Persistent(settings=(foreign,), files=(FILE,))
    host = HostPlan(
        file=FILE,
        keys=(planned_key(SOMAXCONN, "4096", "", persistent, FILE),),
        problems=problems_of(HostState(), persistent, FILE),
    )
    golden(text(capsys, replace(PLAN, hosts=(Answer(name="lb", result=host),))))


LATE = (FILES, "99-zzz.conf")
PLACE = "/etc/sysctl.d/99-zzz.conf:1"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"value": "0x100"}, f"CONFLICT {{}}: {PLACE} sets 0x100, which is 256, at boot after our"),
        ({"value": "9"}, f"CONFLICT {{}}: {PLACE} sets 9, if the kernel takes that, at boot after"),
        (
            {"value": "'65535'"},
            f"CONFLICT {{}}: {PLACE} says \"'65535'\" after our file, which the",
        ),
        (
            {"value": "", "drops": True},
            f"CONFLICT {{}}: {PLACE} makes systemd drop the key at boot",
        ),
        ({"value": "$n", "doubt": "only TuneD"}, f"CONFLICT {{}}: {PLACE} says '$n' at boot"),
        ({"value": f"{SOMAXCONN.value}   # same"}, f"NOTE {{}}: {PLACE} sets the same value alr"),
    ],
)
def test_a_later_line_is_told_as_the_kernel_reads_it(
    capsys: pytest.CaptureFixture[str], line: dict[str, Any], expected: str
) -> None:
    setting = Setting(key=SOMAXCONN.key, place=PLACE, turn=LATE, **line)
    persistent = Persistent(settings=(setting,), by_systemd=True)
    key = planned_key(SOMAXCONN, "4096", "", persistent, FILE, known=["128", "65535"])
    host = HostPlan(file=FILE, keys=(key,))
    output = " ".join(text(capsys, replace(PLAN, hosts=(Answer(name="lb", result=host),))).split())
    assert expected.format(SOMAXCONN.key) in output
    assert ("CONFLICT" in expected) == bool(host.conflicts)


def test_the_share_that_the_smallest_set_keeps_is_said(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    ratio = Interval(5.0, 4.0, 6.0)
    kept = Kept(share=0.9, low=0.8, high=1.0, full=ratio, smaller=ratio, rounds=16)
    deployment = replace(DEPLOYMENT, origin="smallest set", kept=kept)
    golden(text(capsys, replace(PLAN, deployment=deployment)))


@pytest.mark.parametrize(
    ("origin", "known", "expected"),
    [
        (
            "smallest set",
            {"missed": (3.46, 1.55, 7.7)},
            "without it P99 is 3.46 times higher (1.55 to 7.70)",
        ),
        (
            "smallest set",
            {"missed": (0.8, 0.5, 1.25), "left_out": (9, 8, 10)},
            "without it P99 is 1.25 times lower (0.80 to 2.00, so it may be nothing)",
        ),
        (
            "winner",
            {"missed": (3, 2, 4), "left_out": (2, 1.5, 3)},
            "without it P99 is 2.00 times higher (1.50 to 3.00)",
        ),
        (
            "smallest set",
            {"left_out": (2, 1.5, 3)},
            "without it the whole winner's P99 is 2.00 times higher (1.50 to 3.00)",
        ),
        ("winner", {"alone": (2, 1.5, 3)}, "it alone: P99 is 2.00 times lower (1.50 to 3.00)"),
        (
            "winner",
            {"missed": (3, 2, 4)},
            "without it the smallest set's P99 is 3.00 times higher (2.00 to 4.00)",
        ),
        ("winner", {}, "not measured by itself"),
    ],
)
def test_what_a_change_is_worth_is_said_in_words(
    origin: Origin, known: dict[str, tuple[float, float, float]], expected: str
) -> None:
    ratios = {name: Interval(*ratio) for name, ratio in known.items()}
    result = Contribution(keys=(RMEM.key,), before=("1",), after=("2",), **ratios)
    assert worth(replace(RMEM, contribution=result), origin, "P99") == expected
    both = replace(result, keys=(RMEM.key, "net.a.b"), before=("1", "1"), after=("2", "2"))
    assert bool(ratios) == (
        "it and net.a.b" in worth(replace(RMEM, contribution=both), origin, "P99")
    )


def test_what_was_never_explained_says_what_would() -> None:
    assert worth(SOMAXCONN, "winner", "P99") == "not measured by itself (intop explain does that)"


def test_markdown_has_a_table_of_equally_many_cells(capsys: pytest.CaptureFixture[str]) -> None:
    out = as_markdown(sections({"x86": PLAN}))
    rows = [line for line in out.splitlines() if line.startswith("|")]
    assert rows[0] == "| key | now | then | why | risk | to do |"
    assert {row.replace("\\|", "").count("|") for row in rows} == {7}
    assert "### gone: could not be asked" in out
    assert f"| `{RMEM.key}` | `4096 131072 33554432` | `4096 8192 65536` | without it" in rows[2]
    assert "https://docs.kernel.org/networking/ip-sysctl.html" in out
    assert out.count("<details>") == out.count("</details>") == 1
    assert capsys.readouterr().err == ""


def test_no_value_of_a_host_is_markup() -> None:
    key = planned_key(SOMAXCONN, "`|<img src=x>*", "", Persistent(), FILE)
    host = HostPlan(file=FILE, keys=(key,))
    out = as_markdown(sections({"x86": replace(PLAN, hosts=(Answer(name="lb", result=host),))}))
    assert r"\`\|\<img src=x>\*" in out
    assert (code("a b"), code("a`b")) == ("`a b`", r"a\`b")
    assert escaped("|[x") == r"\|\[x"


def test_programs_are_told_what_would_happen() -> None:
    result = json.loads(to_json({"x86": PLAN, "arm": None}))
    assert result["arm"] is None
    keys = result["x86"]["hosts"][0]["result"]["keys"]
    assert [key["outcome"] for key in keys] == ["changes", "is so", "impossible"]
    assert keys[0]["rivals"][0]["wins"] == "at boot"
