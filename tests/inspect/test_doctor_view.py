"""What the doctor found, as a person reads it."""

from dataclasses import replace

import pytest

from intop.domain.diagnosis import Diagnosis, HostDiagnosis, KeyDiagnosis, Readiness
from intop.domain.fetched import Fetched
from intop.domain.host_state import HostState, KeyChange
from intop.domain.probing import HostFacts, Reading
from intop.inspect.doctor_view import examined
from kit.golden import Golden
from kit.printed import cells, shown

pytestmark = pytest.mark.usefixtures("a_narrow_file")

NAME = "balancer-07.prod.eu-west.example.com"
FACTS = HostFacts(
    machine="aarch64",
    kernel="5.15.0-1051-azure-fde",
    cpu="Neoverse",
    cpus=64,
    memory_bytes=256 << 30,
    page_bytes=4096,
    in_namespace=False,
    is_root=True,
    nginx="nginx/1.26.2",
    clock_s=0.0,
)
HELD = HostState(
    holder="root@desk (process 7)",
    since="2026-11-21T15:00:00Z",
    is_watched=True,
    changed=(KeyChange(key="vm.swappiness", before="60", now="1"),),
    reports=("2026-11-20T15:00:00Z: restored by its watchdog",),
)
REFUSED = {f"vm.key{n}": "can't be written: /proc/sys is mounted read-only" for n in range(6)}
REFUSED |= {
    f"kernel.s{n}": f"this kernel doesn't have it: none after 5.12 does: /debug/{n}"
    for n in range(2)
}


def key(access: str = "writable", refusal: str = "", is_tried: bool = True) -> KeyDiagnosis:
    return KeyDiagnosis(
        scope="machine",
        reading=Reading(access, "1", refusal),  # type: ignore[arg-type]
        is_tried=is_tried,
        ranges=((1, 2),),
        choices=(),
        reason="",
    )


def host(**changes: object) -> HostDiagnosis:
    plain = HostDiagnosis(
        name=NAME,
        role="load-balancer",
        facts=FACTS,
        clock_offset_s=-0.004,
        readiness=Readiness(free_mib=5000, can_store=True),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def diagnosis(*hosts: HostDiagnosis, **changes: object) -> Diagnosis:
    result = Diagnosis(
        arch="arm",
        link="10 Gbit/s",
        load_tool="wrk2 4.0.0",
        hosts=hosts or (host(),),
        offered=("net.core.somaxconn",),
        ranges={"net.core.somaxconn": ((16, 65535),)},
        refused=REFUSED,
        lost={},
        problems=(),
    )
    return replace(result, **changes)  # type: ignore[arg-type]


def test_hosts_with_long_names_are_not_cut(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    result = diagnosis(emulation="TCG on x86_64", problems=("b1: its clock is +9.0 s off ours",))
    out = shown(capsys, *examined(result))
    assert "load balancer: a virtual machine by TCG on x86_64" in out
    without = shown(capsys, *examined(replace(result, emulation="")))
    assert "virtual machine" not in without
    # A name may be folded within its column, but every piece of it is there.
    lines = out.splitlines()
    (header,) = [line for line in lines if "role" in line]
    rows = lines[lines.index(header) + 2 : lines.index("load tool: wrk2 4.0.0")]
    assert "".join(row[: header.index("role")].strip() for row in rows) == NAME
    golden(out)


def test_keys_are_grouped_by_reason_with_their_number_the_most_first(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    text = shown(capsys, *examined(diagnosis()))
    golden(text)
    out = " ".join(text.split())
    many = "out of bounds, 6: can't be written: /proc/sys is mounted read-only: vm.key0, vm.key1, "
    few = "out of bounds, 2: this kernel doesn't have it: none after 5.12 does: kernel.s0 "
    assert out.index(many) < out.index(few)
    assert out.endswith("no problem was found")


def test_a_replica_with_the_same_reasons_does_not_repeat_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    same = shown(capsys, *examined(diagnosis(), diagnosis()))
    assert same.count("out of bounds, 6") == 1
    assert same.count("out of bounds: the same as above") == 1
    for other in (diagnosis(refused={"vm.key0": "can't be read"}), diagnosis(arch="x86")):
        assert "the same as above" not in shown(capsys, *examined(diagnosis(), other))


def test_who_holds_a_host_and_its_reports_have_a_line_each(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = shown(capsys, *examined(diagnosis(host(state=HELD)))).splitlines()
    assert (
        f"{NAME}: held by root@desk (process 7) since 2026-11-21T15:00:00Z, watchdog alive, keys "
        "changed: 1"
    ) in " ".join(" ".join(lines).split())
    assert f"{NAME}: 2026-11-20T15:00:00Z: restored by its watchdog" in lines
    assert "held" not in shown(capsys, *examined(diagnosis()))


def test_keys_that_were_written_their_own_values_are_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    keys = {"a": key(), "b": key(refusal="Invalid argument"), "c": key(is_tried=False)}
    out = shown(capsys, *examined(diagnosis(host(keys=keys))))
    assert f"{NAME}: 1 of 2 keys took their own values when written" in out
    out = shown(capsys, *examined(diagnosis(host(keys={"c": key(is_tried=False)}))))
    assert "their own values" not in out


def test_choices_that_the_host_is_without_are_told_with_the_way_to_get_them(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    lost = {"net.x": {c: f"modprobe tcp_{c}" for c in "abcde"}}
    golden(shown(capsys, *examined(diagnosis(lost=lost))))


def test_what_a_host_says_is_neither_markup_nor_a_command(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    facts = replace(FACTS, kernel="[/b]6.1\x1b[2J")
    state = replace(HELD, reports=("a\x1b]0;b",))
    golden(shown(capsys, *examined(diagnosis(host(facts=facts, name="lb", state=state)))))


def test_each_path_has_a_line_with_status_bytes_and_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    paths = (
        Fetched(path="/css/site.css", status=200, bytes=28_672, check=1, seconds=0.001234),
        Fetched(path="/dynamic?r=1", status=502, bytes=157, check=1, seconds=1.5, problem="status"),
        Fetched(path="/[b]slow", status=0, bytes=0, check=0, seconds=0.0, problem="timeout"),
        Fetched(path="/c", status=200, bytes=7, check=1, seconds=0.1, headers=("Host: c",)),
        Fetched(path="/d", status=200, bytes=7, check=1, seconds=0.1, http="2"),
        Fetched(path="/e", status=200, bytes=7, check=1, seconds=0.1, headers=("Token: ge",)),
    )
    out = shown(capsys, *examined(diagnosis(fetched=paths)))
    assert cells(out, "/css/site.css") == ["/css/site.css", "200", "28672", "1.23", "ms"]
    assert cells(out, "/dynamic") == ["/dynamic?r=1", "502", "157", "1500", "ms"]
    assert cells(out, "/[b]slow") == ["/[b]slow", "timeout", "-", "-"]
    assert cells(out, "/c (") == ["/c", "(Host:", "c)", "200", "7", "100", "ms"]
    assert cells(out, "/d (") == ["/d", "(HTTP/2)", "200", "7", "100", "ms"]
    assert cells(out, "/e (") == ["/e", "(Token:", "***)", "200", "7", "100", "ms"]
    assert "path asked for once" in out
    assert "path asked" not in shown(capsys, *examined(diagnosis()))


def test_warnings_are_no_problems(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    golden(shown(capsys, *examined(diagnosis(warnings=("lb: tuned runs there",)))))


def test_a_command_that_mends_a_problem_is_not_broken(capsys: pytest.CaptureFixture[str]) -> None:
    mending = f"lb: add its key with: echo '{'A' * 80}' >> known_hosts, on one line"
    result = replace(diagnosis(), problems=(mending,))
    assert f"PROBLEM  {mending}" in shown(capsys, *examined(result)).splitlines()
