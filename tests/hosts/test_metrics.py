import os
from dataclasses import replace
from pathlib import Path

import pytest

from intop.domain.trial import HostMetrics
from intop.errors import CommandError
from intop.hosts.metrics import Counters, CpuTime, between, parse_counters
from intop.hosts.processes import Process
from kit.local_host import LocalHost, read_counters

DATA = Path(__file__).parents[1] / "data" / "hosts"
X86 = (DATA / "counters-x86-namespace.txt").read_text()
LATER = (DATA / "counters-x86-namespace-later.txt").read_text()
"""The lines of single processors were added to these two by hand."""
ARM = (DATA / "counters-arm-by-hand.txt").read_text()
EACH = (DATA / "counters-x86-each-cpu.txt").read_text()
EACH_LATER = (DATA / "counters-x86-each-cpu-later.txt").read_text()


def test_a_real_namespace() -> None:
    assert Counters(
        cpu_total=129667 + 37774 + 466197 + 778 + 14476 + 99,
        cpu_idle=466197 + 778,
        cpu_steal=99,
        cpus={0: CpuTime(320450, 9000, 50), 1: CpuTime(328541, 5476, 49)},
        memory_used_kib=24684084 - 24176128,
        time_wait=0,
        listen_overflows=0,
        listen_drops=0,
        retransmits=0,
        accepted=0,
        pressure_us=358894800,
        uptime_s=3278.19,
    ) == parse_counters(X86)


def test_an_arm_machine_without_pressure_in_its_kernel() -> None:
    assert Counters(
        cpu_total=92010,
        cpu_idle=90200,
        cpu_steal=0,
        cpus={0: CpuTime(46004, 300, 0), 1: CpuTime(46006, 0, 0)},
        memory_used_kib=100_000_000,
        time_wait=4321,
        listen_overflows=17,
        listen_drops=19,
        retransmits=23,
        accepted=0,
        pressure_us=0,
        uptime_s=1234.56,
    ) == parse_counters(ARM)


def without(start: str) -> str:
    return "\n".join(line for line in X86.splitlines() if not line.startswith(start))


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "cat: /proc/stat: Permission denied\n",
        X86[: len(X86) // 2],
        without("cpu "),
        without("cpu"),
        X86.replace("cpu1 69667 0 19774", "cpu0 69667 0 19774"),
        X86.replace("cpu1 69667 0 19774", "cpu1 69667 0 -1"),
        without("MemAvailable"),
        without("TcpExt"),
        without("Tcp:"),
        X86.replace("MemTotal:       24684084 kB", "MemTotal:"),
        X86.replace(" tw 0 ", " "),
        X86 + "and more\n",
        X86.replace("3278.19", "5 (nginx) R 1\n3278.19"),
    ],
)
def test_an_answer_that_makes_no_sense_names_the_host(answer: str) -> None:
    with pytest.raises(CommandError, match=r"^lb: its counters can't be read"):
        read_counters(LocalHost(answer))


def test_this_machine() -> None:
    result = read_counters(LocalHost(), processes=True)
    assert 0 < result.cpu_idle < result.cpu_total
    assert os.sysconf("SC_NPROCESSORS_ONLN") == len(result.cpus)
    assert all(0 <= cpu.steal + cpu.softirq < cpu.total for cpu in result.cpus.values())
    # The sum is that of the lines, of which each was rounded down to whole ticks.
    each = sum(cpu.total for cpu in result.cpus.values())
    assert abs(result.cpu_total - each) <= 8 * len(result.cpus)
    assert Path("/proc/net/softnet_stat").exists() == (result.softnet_drops is not None)
    assert result.memory_used_kib > 0
    assert result.uptime_s > 0
    assert any(pid == os.getpid() for pid, _ in result.processes)
    assert read_counters(LocalHost()).processes == {}


def test_between_two_real_readings() -> None:
    result = between(parse_counters(X86), parse_counters(LATER))
    assert pytest.approx(result.cpu) == 1 - 165 / 205
    assert pytest.approx(result.cpu_pressure) == (358993219 - 358894800) / 1e6 / 1.03
    assert pytest.approx(result.memory_mib) == (24684084 - 24167348) / 1024
    assert result.steal == 0.0


def test_between_counts_what_happened_and_keeps_what_is() -> None:
    before = parse_counters(ARM)
    after = replace(
        before,
        cpu_total=before.cpu_total + 400,
        cpu_idle=before.cpu_idle + 100,
        cpu_steal=before.cpu_steal + 40,
        memory_used_kib=2048,
        time_wait=5,
        listen_overflows=before.listen_overflows + 1,
        listen_drops=before.listen_drops + 2,
        retransmits=before.retransmits + 3,
        accepted=before.accepted + 4,
        pressure_us=before.pressure_us + 500_000,
        uptime_s=before.uptime_s + 2,
    )
    counts = {"listen_overflows": 1, "listen_drops": 2, "retransmits": 3, "accepted": 4}
    shares = {"cpu": 0.75, "steal": 0.1, "cpu_pressure": 0.25}
    memory = {"memory_mib": 2.0, "memory_before_mib": 100_000_000 / 1024}
    # The lines of single processors were left as they were, and ARM has no softnet_stat.
    each = {"cpus": 2, "max_cpu_steal": 0.0, "max_cpu_softirq": 0.0}
    expected = HostMetrics(time_wait=5, time_wait_before=4321, **counts, **shares, **memory, **each)
    assert between(before, after) == expected


def with_processes(counters: str, *lines: str) -> str:
    """The processes are listed between the counters and the clock."""
    *rest, clock = counters.splitlines()
    return "\n".join([*rest, *lines, clock, ""])


def listed(pid: int, name: str, ticks: int, flags: int = 4194624) -> str:
    return f"{pid} ({name}) R 1 1 1 0 -1 {flags} 0 0 0 0 {ticks} 0 0 0 20 0 1 0 77 0 0 0 0 0"


def test_what_other_programs_took_is_a_share_of_the_hosts_time() -> None:
    """205 ticks passed between the two readings, on two processors."""
    early = [listed(5, "nginx", 7), listed(6, "a b", 1000)]
    late = [listed(5, "nginx", 90), listed(6, "a b", 1041)]
    late.append(listed(7, "kworker/0:1", 60, flags=2129984))
    before = parse_counters(with_processes(X86, *early))
    after = parse_counters(with_processes(LATER, *late))
    expected = {(5, 77): Process("nginx", 1, 7, 0), (6, 77): Process("a b", 1, 1000, 0)}
    assert before.processes == expected
    result = between(before, after, ("nginx", "sshd"))
    assert (result.foreign_cpu, result.foreign_program) == (pytest.approx(41 / 205), "a b")
    # They are listed a moment after the host's own ticks were read, and may have more.
    busier = replace(after, processes={(6, 77): Process("a b", 1, 1300, 0)})
    assert between(before, busier, ("nginx",)).foreign_cpu == 1
    unknown = between(before, after)
    assert (unknown.foreign_cpu, unknown.foreign_program) == (None, "")


def test_two_readings_at_one_moment_divide_by_nothing() -> None:
    before = parse_counters(X86)
    assert (between(before, before).steal, between(before, before).cpu_pressure) == (0.0, 0.0)


# Each processor -----------------------------------------------------------------------------------


def test_a_real_machine_with_all_of_its_processors() -> None:
    result = parse_counters(EACH)
    assert {0: CpuTime(2604888, 47245, 8122), 1: CpuTime(2609234, 44794, 8012)} == result.cpus
    assert (result.softnet_drops, result.softnet_squeezes) == (0, 0x92 + 0x8C)
    assert len(parse_counters(EACH.replace("cpu1 ", "cpu17 ")).cpus) == 2


def test_of_each_kind_of_time_the_processor_with_most_of_it_counts() -> None:
    before, after = parse_counters(EACH), parse_counters(EACH_LATER)
    result = between(before, after)
    assert (result.cpus, result.max_cpu_steal) == (2, 0.0)
    assert pytest.approx(result.max_cpu_softirq) == 13 / 102
    robbed = replace(after.cpus[0], steal=before.cpus[0].steal + 33)
    result = between(before, replace(after, cpus={**after.cpus, 0: robbed}))
    assert pytest.approx(result.max_cpu_steal) == 33 / 97
    assert result.steal == 0.0


def test_a_processor_that_was_switched_off_or_on_says_nothing() -> None:
    before, after = parse_counters(EACH), parse_counters(EACH_LATER)
    one = {0: before.cpus[0]}
    assert pytest.approx(between(replace(before, cpus=one), after).max_cpu_softirq) == 6 / 97
    other = {7: after.cpus[1]}
    result = between(before, replace(after, cpus=other))
    assert (result.cpus, result.max_cpu_steal, result.max_cpu_softirq) == (1, 0.0, 0.0)


def test_time_that_the_kernel_takes_back_is_none() -> None:
    before = parse_counters(EACH)
    less = {n: replace(cpu, steal=cpu.steal - 3) for n, cpu in before.cpus.items()}
    assert between(before, replace(before, cpus=less)).max_cpu_steal == 0.0


def test_drops_and_squeezes_are_those_of_all_processors_between_the_readings() -> None:
    later = EACH_LATER.replace(" 00000000 00000092 ", " 0000000f 00000093 ")
    result = between(parse_counters(EACH), parse_counters(later))
    assert (result.softnet_drops, result.softnet_squeezes) == (15, 1)
    # One of them was switched off meanwhile.
    off = "".join(line for line in later.splitlines(True) if not line.startswith("04af"))
    result = between(parse_counters(EACH), parse_counters(off))
    assert (result.softnet_drops, result.softnet_squeezes) == (15, 0)


def test_a_host_without_softnet_stat_has_no_drops_to_tell_of() -> None:
    result = between(parse_counters(X86), parse_counters(LATER))
    assert (result.softnet_drops, result.softnet_squeezes) == (None, None)


def test_context_switches_are_counted_between_the_readings() -> None:
    before, after = parse_counters(EACH), parse_counters(EACH_LATER)
    seconds = after.uptime_s - before.uptime_s
    result = between(before, after)
    assert (133254602 - 133241918) / seconds == pytest.approx(result.context_switches_per_s)
    # The reader's test data of an earlier intop leaves them out.
    assert between(parse_counters(X86), parse_counters(LATER)).context_switches_per_s is None


RAPL = "energy 1000 262143328850\nenergy 262143328000 262143328850\n"


def with_energy(text: str, lines: str) -> str:
    """A reading with the packages' lines behind the tables, ahead of the time."""
    *rest, last = text.rstrip("\n").split("\n")
    return "\n".join([*rest, lines + last, ""])


def test_power_is_that_of_all_packages_and_counters_begin_again_at_zero() -> None:
    before, after = parse_counters(X86), parse_counters(LATER)
    seconds = after.uptime_s - before.uptime_s
    used = "energy 5001000 262143328850\nenergy 999149 262143328850\n"
    result = between(
        parse_counters(with_energy(X86, RAPL)), parse_counters(with_energy(LATER, used))
    )
    # 5 J on one, and on the other 850 uJ up to the end, 999,149 from 0 on, and the step to it.
    assert 6.0 / seconds == pytest.approx(result.power_w)


def test_without_the_same_packages_no_power_is_told() -> None:
    before = parse_counters(with_energy(X86, RAPL))
    one = with_energy(LATER, "energy 5001000 262143328850\n")
    assert between(before, parse_counters(one)).power_w is None
    assert between(parse_counters(X86), parse_counters(LATER)).power_w is None


@pytest.mark.parametrize("line", ["energy 5\n", "energy 5 x\n", "energy -5 9\n", "energy 1 2 3\n"])
def test_energy_that_makes_no_sense_is_refused(line: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of several kinds
        parse_counters(with_energy(X86, line))
