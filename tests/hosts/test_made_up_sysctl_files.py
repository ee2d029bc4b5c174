"""Made-up files of sysctl.d: where intop is sure, systemd-sysctl and procps do exactly that."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from intop.domain.persistent import Persistent, effect_of
from intop.domain.sysctl_lines import unread
from intop.hosts.persistent import read_persistent
from kit.local_host import RawHost
from kit.sysctl_programs import PROCPS, SYSTEMD, Program, program

OURS = "etc/sysctl.d/99-zz-intop.conf"
VALUES = {
    "net.core.somaxconn": "65535",
    "net.ipv4.tcp_rmem": "4096 262144 8388608",
    "net.ipv4.tcp_fin_timeout": "8",
    "net.ipv4.tcp_keepalive_probes": "5",
    "net.ipv4.ip_local_port_range": "10000 65000",
    "net.ipv4.tcp_congestion_control": "reno",
}
NAMES = ["10-a.conf", "99-sysctl.conf", "99-zz-intop2.conf", "99-zzz.conf", "99-zzz.conf"] * 2
NAMES += [".99-zzz.conf", "99-zzz.conf.bak", "ä.conf", "Z.conf"]
FOLDERS = ["etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d"]
NUMBERS = ["1", "8", "010", "0x10", "0X1f", "08", "-1", "+5", "12x", "1e3", "99999999999", "'9'"]
NUMBERS += [
    '"9"',
    "9;",
    "9,9",
    "9 # same",
    "9# same",
    "",
    "0",
    "0" * 30,
    "256",
    "yes",
    "9\x0b",
    "9.5",
]
NUMBERS += ["5 6 7", "5 6 7 8", "5 6 x", "5\t6\x0b7", "7 6 5", "40000 50000", "010 0x20 30", "=9"]
NUMBERED = [key for key in VALUES if not key.endswith("congestion_control")]
FORMS: dict[str, Callable[[int], str]] = {"OURS": str, "HEX": hex, "OCTAL": "0{:o}".format}
FORMS["NEAR"] = lambda number: str(number + 1)
LIKELY = [
    *FORMS,
    *FORMS,
    "OURS   # same",
    "HEX x",
    "OCTAL 9",
    "'OURS'",
    "OURS;",
    "NEAR # other",
] * 2
TEXTS = ["reno", "RENO", "'reno'", "reno # same", "nosuch"]
SPELLINGS = ["{}", "{}", "{}", "/{}", "{}.", "{} x", " {}\t", "\x0b{}", "\u00a0{}"]
BEFORE = ["", "", "", "", "-", "-", "- ", "--", "# ", ";", "sysctl -w ", "\ufeff"]
EQUALS = ["=", " = ", "\t=\t", "=", "= ", " =\r", ":"]
ENDS = ["\n", "\n", "\n", "\r\n", " \n", "", "\r", "\0\n", "\\\n"]


keys = st.sampled_from(sorted(VALUES))


@st.composite
def lines(draw: st.DrawFn, key: str) -> str:
    """A line about a key, or about a pattern that it matches."""
    value = draw(st.sampled_from([*NUMBERS, *(LIKELY if key in NUMBERED else ())]))
    numbers = [int(word) for word in VALUES[key].split()] if key in NUMBERED else []
    for name, form in FORMS.items():
        value = value.replace(name, " ".join(form(number) for number in numbers))
    if key not in NUMBERED:
        value = draw(st.sampled_from(TEXTS))
    spelled = [*SPELLINGS, f"{key[:-2]}*", f"{key[:-1]}?", f"{key[:-1]}[^x]", key.upper()]
    spelled += [key.replace(".", "/"), key.replace(".", "..", 1), key.replace(".", "/", 1)]
    spelled = draw(st.sampled_from(spelled)).format(key)
    before, end = draw(st.sampled_from(BEFORE)), draw(st.sampled_from(ENDS))
    if draw(st.integers(0, 6)) == 0:
        return f"{before}{spelled}{end}"
    return f"{before}{spelled}{draw(st.sampled_from(EQUALS))}{value}{end}"


@st.composite
def trees(draw: st.DrawFn) -> tuple[str, dict[str, str | None]]:
    """A key and files that are about it, of which some hide others."""
    key = draw(keys)
    files: dict[str, str | None] = {}
    for _ in range(draw(st.integers(1, 4))):
        path = f"{draw(st.sampled_from(FOLDERS))}/{draw(st.sampled_from(NAMES))}"
        text = "".join(draw(st.lists(lines(key), min_size=1, max_size=3)))
        files[path] = draw(
            st.sampled_from([text, text, text, text, text, "", None, "null", "folder"])
        )
    if draw(st.integers(0, 3)) == 0:
        files["etc/sysctl.conf"] = draw(lines(key))
    return key, files


@pytest.fixture(scope="module")
def systemd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with program(tmp_path_factory.mktemp("systemd"), SYSTEMD) as running:
        yield running


@pytest.fixture(scope="module")
def procps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with program(tmp_path_factory.mktemp("procps"), PROCPS) as running:
        yield running


def read(running: Program) -> Persistent:
    host = RawHost()
    host.address = replace(host.address, config_root=str(running.root))
    return read_persistent(host)


def check_our_value(running: Program, key: str, files: dict[str, str | None]) -> None:
    """What intop says becomes of our value at boot, against what the program makes of it."""
    own = running.own[key]
    after = running.values({**files, OURS: f"{key} = {VALUES[key]}\n"})[key]
    fate = read(running).fate(key, VALUES[key], f"/{OURS}", (own,))
    event(fate.effect if fate else "kept")
    if fate is None:
        assert VALUES[key] == after
    elif fate.effect == "sets":
        assert fate.value == after
    elif fate.effect in ("drops", "refused"):
        assert own == after


def check_winner(running: Program, key: str, files: dict[str, str | None]) -> None:
    """Which line intop says sets the key, without our file."""
    own = running.own[key]
    after = running.values(files)[key]
    winner = read(running).winner(key)
    effect, value = effect_of(winner, (own, VALUES[key])) if winner else ("nothing", own)
    event(effect)
    if effect in ("nothing", "sets"):
        assert value == after


slow = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@settings(slow, max_examples=200)
@given(made=trees())
def test_systemd_makes_of_our_value_what_we_are_sure_of(
    systemd: Program, made: tuple[str, dict[str, str | None]]
) -> None:
    check_our_value(systemd, *made)


@settings(slow, max_examples=100)
@given(made=trees())
def test_procps_makes_of_our_value_what_we_are_sure_of(
    procps: Program, made: tuple[str, dict[str, str | None]]
) -> None:
    check_our_value(procps, *made)


@settings(slow, max_examples=200)
@given(made=trees())
def test_the_line_that_systemd_takes_is_the_one_that_we_name(
    systemd: Program, made: tuple[str, dict[str, str | None]]
) -> None:
    check_winner(systemd, *made)


@settings(slow, max_examples=200)
@given(made=trees())
def test_the_line_that_procps_takes_is_the_one_that_we_name(
    procps: Program, made: tuple[str, dict[str, str | None]]
) -> None:
    check_winner(procps, *made)


@settings(slow, max_examples=150)
@given(key=st.shared(keys, key="key"), line=st.shared(keys, key="key").flatmap(lines))
def test_a_line_that_we_call_useless_sets_nothing(
    systemd: Program, procps: Program, key: str, line: str
) -> None:
    text = line.rstrip("\n")
    if "\n" in text or not unread(text):
        event("not looked at")
        return
    for running in (systemd, procps):
        assert running.own[key] == running.values({"etc/sysctl.d/1.conf": line})[key]
