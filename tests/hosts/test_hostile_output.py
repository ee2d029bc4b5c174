"""Whatever a host prints, its parsers give an answer that makes sense or an error that names it."""

import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.damage import NUMBERS, PIECES, anything, damaged
from builders.trials import cluster
from intop.config.catalogue import load_catalogue
from intop.domain.cluster import HostAddress
from intop.domain.parameter import normalised
from intop.domain.probing import HostFacts, Probe, Reading, space_of
from intop.errors import CommandError, HostError, UnreachableError
from intop.hosts import settle
from intop.hosts.answers import count, decimal, lines, whole
from intop.hosts.facts import facts, parse_facts
from intop.hosts.measure import idle
from intop.hosts.metrics import Counters, between, parse_counters
from intop.hosts.processes import foreign_ticks, parse_process, parse_processes
from intop.hosts.rig import Rig, clock_offsets
from intop.hosts.sysctl import parse_probe, parse_values, probe
from intop.resources import shipped
from kit.local_host import LocalHost, Told, read_counters

DATA = Path(__file__).parents[1] / "data" / "hosts"
COUNTERS = (DATA / "counters-x86-namespace.txt").read_text()
EACH = (DATA / "counters-x86-each-cpu.txt").read_text()
FACTS = (DATA / "facts-x86-namespace.txt").read_text()
PROBE = (DATA / "probe-x86-namespace.txt").read_text()
NGINX = "812 (nginx) S 811 811 811 0 -1 4194624 211 0 0 0 41 59 3 4 20 0 1 0 12345 57634816 1402 0"
LISTED = COUNTERS.replace("\n3278.19", f"\n{NGINX}\n3278.19")
SOCKETS = (
    "ESTAB 0 96 198.18.0.20:22 198.18.0.1:49340 timer:(on,204ms,0) ino:3508772 sk:476a <->\n"
    "LISTEN 0 4096 0.0.0.0:80 0.0.0.0:* ino:3506057 sk:747b cgroup:unreachable:1 <->\n"
)
LONG = 10_000_000


def numbers_in(result: Any) -> Iterator[float]:
    for value in asdict(result).values():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            yield value


class Answers(LocalHost):
    """A host by its name that answers every command with a text."""

    def __init__(self, answer: str, role: Any = "load-balancer", name: str = "lb") -> None:
        super().__init__(answer)
        self.address = HostAddress(name=name, role=role, hostname=name)


def rig_of(answer: str) -> Rig:
    made = cluster()
    return Rig(made, tuple(Answers(answer, a.role, a.name) for a in made.hosts))


@contextmanager
def said_with_the_host() -> Iterator[None]:
    """Nothing is raised but an error that names its host."""
    try:
        yield
    except HostError as error:
        output = str(error)
    else:
        return
    assert output.startswith(("lg: ", "lb: ", "b1: "))
    assert len(output) < 1000


# Lines and numbers --------------------------------------------------------------------------------


@given(st.lists(st.text(st.characters(exclude_characters="\n"), max_size=20), max_size=10))
def test_only_a_line_feed_ends_a_line(expected: list[str]) -> None:
    assert lines("".join(f"{line}\n" for line in expected)) == expected


def test_a_line_that_was_cut_off_is_none() -> None:
    assert lines("one\ntw") == ["one"]
    assert lines("") == []


@given(anything | st.sampled_from(NUMBERS) | st.integers().map(str) | st.floats().map(str))
def test_a_number_is_finite_and_means_the_same_to_everybody(text: str) -> None:
    for read in (whole, count, decimal):
        try:
            result = read(text)
        except ValueError:
            continue
        assert text.isascii()
        assert result == (int(text) if isinstance(result, int) else float(text))
        assert math.isfinite(result)


@given(st.integers(-(2**63), 2**64 - 1))
def test_a_number_of_64_bits_is_taken(number: int) -> None:
    assert number == whole(str(number))


# Values and probes --------------------------------------------------------------------------------

VALUES = st.text(st.characters(exclude_characters="\n"), max_size=40)


@given(VALUES, st.sampled_from("\t:"))
def test_a_value_is_read_as_it_is_whatever_is_in_it(value: str, separator: str) -> None:
    text = f"net/core/x{separator}{value}\nnet/core/y{separator}7\n"
    assert {"net.core.x": normalised(value), "net.core.y": "7"} == parse_values(lines(text))


@given(VALUES)
def test_a_probed_value_is_read_as_it_is_whatever_is_in_it(value: str) -> None:
    text = f"net/core/x\twritable\t{value}\nnet/core/y\tmissing\t\n"
    expected = {"net.core.x": Reading("writable", normalised(value))}
    assert expected | {"net.core.y": Reading("missing", "")} == parse_probe(text)


@given(VALUES)
def test_only_what_separates_vectors_is_made_one_blank(value: str) -> None:
    assert re.sub(r"[ \t\n]", "", value) == normalised(value).replace(" ", "")
    assert normalised(value) == normalised(normalised(value))


def test_a_key_with_several_lines_has_no_value() -> None:
    assert parse_values(["net/core/x:1", "net/core/x:2", "net/core/y:7"]) == {"net.core.y": "7"}


@given(anything | damaged(PROBE))
def test_no_probe_is_too_odd_to_be_read(text: str) -> None:
    known = {"missing", "unreadable", "readable", "writable"}
    assert all(reading.access in known for reading in parse_probe(text).values())
    assert all("\n" not in value for value in parse_values(lines(text)).values())


@given(damaged(PROBE))
def test_a_probe_answers_what_was_asked_or_fails(text: str) -> None:
    asked = ["net.core.somaxconn", "net.ipv4.tcp_rmem", "vm.swappiness"]
    with said_with_the_host():
        assert asked == list(probe(Answers(text), asked))


def test_a_probe_that_ends_early_does_not_make_keys_missing() -> None:
    early = PROBE[: PROBE.index("vm/swappiness") + 20]
    with pytest.raises(CommandError, match=r"^lb: says nothing of 1 keys, such as vm.swappiness"):
        probe(Answers(early), ["net.core.somaxconn", "vm.swappiness"])


CATALOGUE = load_catalogue(shipped("configs") / "parameters.toml")


@given(st.data())
def test_a_space_is_made_of_whatever_was_read(data: st.DataObject) -> None:
    """What a host says can leave a parameter out, but not break the making of the space."""
    odd = st.one_of(st.sampled_from(NUMBERS), VALUES, st.just("7 " * 100), st.just("9" * 19))
    keys = data.draw(st.sets(st.sampled_from([p.key for p in CATALOGUE.parameters]), min_size=40))
    readings = {p.key: Reading("writable", "1") for p in CATALOGUE.parameters}
    readings |= {key: Reading("writable", normalised(data.draw(odd))) for key in keys}
    probed = space_of(
        CATALOGUE.parameters,
        CATALOGUE.constraints,
        Probe(facts=parse_facts(FACTS), readings=readings),
        "high",
    )
    left = {p.key for p in probed.space.parameters}
    assert {p.key for p in CATALOGUE.parameters} == left | set(probed.refused)


# Facts and clocks ---------------------------------------------------------------------------------


@given(anything | damaged(FACTS))
def test_facts_make_sense_or_the_host_is_named(text: str) -> None:
    with said_with_the_host():
        result = facts(Answers(text))
        assert all(math.isfinite(number) for number in numbers_in(result))
        assert min(result.cpus, result.memory_bytes, result.page_bytes) > 0
        assert max(map(len, (result.machine, result.kernel, result.cpu, result.nginx))) <= 200


@pytest.mark.parametrize("name", ["cpus", "memory_kib", "page", "clock"])
@pytest.mark.parametrize("number", [n for n in NUMBERS if n not in ("0", "1.5", "9" * 20)])
def test_a_fact_that_is_no_number_is_refused(name: str, number: str) -> None:
    text = re.sub(rf"(?m)^{name}=.*$", f"{name}={number}", FACTS)
    if (name, number) in (("clock", "-1"), ("clock", "-0")):
        assert facts(Answers(text)).clock_s <= 0
    else:
        with pytest.raises(CommandError, match=r"^lb: its description can't be read"):
            facts(Answers(text))


@given(anything | st.sampled_from([f"{n}\n" for n in NUMBERS]))
def test_a_clock_is_a_time_or_the_host_is_named(text: str) -> None:
    with said_with_the_host():
        assert all(math.isfinite(offset) for offset in clock_offsets(rig_of(text)).values())


@pytest.mark.parametrize(
    "text", ["", "nan\n", "date: invalid\n", "1763740000.%N\n", "1\n2\n", "17"]
)
def test_what_is_no_clock_is_named(text: str) -> None:
    with pytest.raises(CommandError, match=r"^(lg|lb|b1): its clock can't be read"):
        clock_offsets(rig_of(text))


# Counters -----------------------------------------------------------------------------------------


def make_sense(result: Counters) -> bool:
    numbers = [*numbers_in(result)]
    return all(math.isfinite(number) and number >= 0 for number in numbers[:-1])


@given(anything | damaged(LISTED) | damaged(EACH))
def test_counters_make_sense_or_the_host_is_named(text: str) -> None:
    with said_with_the_host():
        result = read_counters(Answers(text))
        assert make_sense(result)


@given(damaged(LISTED) | damaged(EACH), damaged(LISTED) | damaged(EACH))
def test_what_lies_between_two_readings_makes_sense(one: str, other: str) -> None:
    try:
        metrics = between(parse_counters(one), parse_counters(other), ["sshd"])
    except (ValueError, KeyError, IndexError):
        return
    assert all(math.isfinite(number) and number >= 0 for number in numbers_in(metrics))
    assert metrics.cpu <= 1
    assert metrics.steal <= 1
    assert max(metrics.max_cpu_steal or 0, metrics.max_cpu_softirq or 0) <= 1


@given(st.data())
def test_counters_in_another_order_are_the_same_or_refused(data: st.DataObject) -> None:
    first, *rest, last = COUNTERS.splitlines()
    text = "\n".join([first, *data.draw(st.permutations(rest)), last, ""])
    try:
        result = parse_counters(text)
    except (ValueError, KeyError, IndexError):
        return
    assert parse_counters(COUNTERS) == result


@given(st.integers(0, len(LISTED) - 1))
def test_counters_that_were_cut_off_are_refused(end: int) -> None:
    with pytest.raises(CommandError, match=r"^lb: its counters can't be read"):
        read_counters(Answers(LISTED[:end]))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("MemTotal:       24684084 kB\n", "MemTotal:       24684084 kB\nMemTotal: 25000000 kB\n"),
        ("TCP: inuse", "TCP: inuse 1 tw 5\nTCP: inuse"),
        ("3278.19", "nan"),
        ("3278.19", "1e400"),
        ("cpu  129667", "cpu  inf"),
        ("cpu  129667", "cpu0 129667"),
        ("cpu1 69667 0 ", "cpu0 69667 0 "),
        ("cpu1 69667 0 ", "cpu1 69667 -1 "),
        ("cpu1 69667 0 19774 233197 378 0 5476 49 0 0", "cpu1 69667 0 19774"),
        ("\nTcp: 1 ", "\nTcpExt: 1 "),
        ("TCP: ", "UDP: "),
    ],
)
def test_a_counter_that_cannot_be_trusted_is_refused(old: str, new: str) -> None:
    assert old in COUNTERS
    with pytest.raises(CommandError, match=r"^lb: its counters can't be read"):
        read_counters(Answers(COUNTERS.replace(old, new, 1)))


@pytest.mark.parametrize(
    "name", ["uptime_s", "listen_overflows", "listen_drops", "retransmits", "pressure_us"]
)
def test_a_counter_that_went_back_is_a_host_that_started_anew(name: str) -> None:
    after = parse_counters(COUNTERS)
    before = replace(after, **{name: getattr(after, name) + 1})
    with pytest.raises(ValueError, match=f"its {name} went back"):
        between(before, after)


def test_a_host_that_started_anew_is_named_as_lost() -> None:
    """A trial that is cut in two by that is disturbed, which a lost connection makes it."""
    rig = rig_of(COUNTERS)
    hosts = []
    for host in rig.hosts:
        answers = [COUNTERS, COUNTERS.replace("3278.19", "12.5")]
        hosts.append(host)
        host.converse = lambda _, output=answers: Told("", lambda: output.pop(0))  # type: ignore[method-assign]
    with pytest.raises(UnreachableError, match=r"^lg: was started anew meanwhile"):
        idle(Rig(rig.cluster, tuple(hosts)), 0.0)


# Processes ----------------------------------------------------------------------------------------

names = st.text(max_size=15) | st.lists(st.sampled_from([*PIECES, "9"]), max_size=5).map("".join)


@given(names)
def test_a_program_may_be_called_anything(name: str) -> None:
    """Also in the middle of a list: what comes after it is not its to name."""
    name = name.encode()[:15].decode(errors="replace")
    odd = NGINX.replace("(nginx)", f"({name})").replace("812 ", "90 ", 1)
    result = parse_counters(LISTED.replace(NGINX, f"{odd}\n{NGINX}"))
    plain = parse_counters(LISTED)
    assert plain == replace(result, processes=plain.processes)
    assert ["nginx", name] == [p.name for p in reversed(result.processes.values())]


@given(anything | damaged(f"{NGINX}\n{NGINX.replace('812', '813')}\n"))
def test_a_list_of_processes_is_read_or_refused(text: str) -> None:
    try:
        result = parse_processes(lines(text))
    except (ValueError, IndexError):
        return
    ticks, _ = foreign_ticks({}, result, [])
    assert ticks >= 0


def test_a_long_chain_of_ended_processes_takes_no_time() -> None:
    """10,000 of them that nobody waited for, each with the same heir."""
    listed = "\n".join(NGINX.replace("812", str(pid), 1) for pid in range(1000, 11_000))
    assert foreign_ticks(parse_processes(listed.split("\n")), {}, []) == (0, "")


NAMER = """
import sys
open("/proc/self/comm", "wb").write(bytes.fromhex(sys.argv[1]))
print("named", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    "name", ["x\nMemTotal: 1", "a\u2028b", "a\x85b", "9\n9 (x) R 1 1", ") R 1\n", "\x1b]0;x\a"]
)
def test_a_real_program_with_an_evil_name_forges_nothing(name: str) -> None:
    raw = name.encode()[:15]
    with subprocess.Popen(
        [sys.executable, "-c", NAMER, raw.hex()], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"named\n"
        result = read_counters(LocalHost(), processes=True)
        process.communicate(b"")
    (own,) = [p for (pid, _), p in result.processes.items() if pid == process.pid]
    assert raw == own.name.encode()
    assert os.getpid() == own.parent
    assert result.memory_used_kib > 1000


# Sockets ------------------------------------------------------------------------------------------


@given(anything | damaged(f"waiting 3\n{SOCKETS}"))
def test_settling_ends_or_names_the_host(text: str) -> None:
    with said_with_the_host():
        settle.settle(rig_of(text), max_time_wait=20_000, limit_s=-1)


@pytest.mark.parametrize(
    "output", ["", "waiting \n", "waiting nan\n", "waiting -1\n", "waiting 1\n" * 2]
)
def test_a_count_of_sockets_that_is_none_is_named(output: str) -> None:
    with pytest.raises(CommandError, match=r"^(lg|lb|b1): its sockets in TIME_WAIT can't be count"):
        settle.settle(rig_of(f"{output}{SOCKETS}"), max_time_wait=1, limit_s=-1)


# 10 MB --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", ["x", "9", " ", "\n", "\t", "=", ") ", "1 ", "cpu ", "\0"])
def test_10_mb_are_refused_or_read(piece: str) -> None:
    # Of lines fewer do: a list of ten million takes seconds for nothing.
    text = piece * (LONG // len(piece) if piece != "\n" else LONG // 20)
    for ask in (facts, read_counters, lambda host: probe(host, ["a.b"])):
        with said_with_the_host():
            ask(Answers(text))
    with said_with_the_host():
        clock_offsets(rig_of(text))
    with said_with_the_host():
        settle.settle(rig_of(text), max_time_wait=1, limit_s=-1)
    with pytest.raises((ValueError, IndexError)):
        parse_process(text)
    assert isinstance(parse_values(lines(text)), dict)


def test_a_fact_of_10_mb_is_not_stored_with_every_trial() -> None:
    text = FACTS.replace("kernel=", "kernel=" + "6" * LONG)
    with pytest.raises(CommandError, match=r"kernel has 100000\d\d characters"):
        facts(Answers(text))


def test_the_untouched_outputs_are_read() -> None:
    """Else all that was refused above may have been refused for something else."""
    assert isinstance(facts(Answers(FACTS)), HostFacts)
    assert len(read_counters(Answers(LISTED)).processes) == 1
    result = settle.settle(rig_of(f"waiting 3\n{SOCKETS}"), max_time_wait=9, limit_s=1)
    assert "still listens" in result.left
