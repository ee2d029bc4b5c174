"""Made-up configurations, each read by intop and by the real ssh: they agree, or intop refuses.

ssh is run as far as its greeting: in place of a network it has ProxyCommands, and a program `ssh`
that only writes down with which words a ProxyJump starts it.
"""

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intop.domain.cluster import HostAddress
from intop.errors import UnreachableError
from intop.hosts.ssh.config import Route, route

FILES = 40
NAMES = (
    *("web", "web1", "WEB", "lb.example", "gate", "gate2"),
    *("j-web", "10.0.0.1", "::1", "db-%h"),
)
"""The hosts that are asked for in each file: a thousand inputs altogether."""
ENVIRONMENT = {"INTOP_KEYS": "/keys/%h", "INTOP_AGENT": "/run/agent"}
MOST_HOPS = 2
RECORD = '#!/bin/sh\nprintf "%s\\n" "$@" > "$INTOP_WORDS"\n'
SILENT = "ProxyCommand=true"
"""The way to a host that has no jump host and no command: no network is used."""

VALUES = {
    "HostName": ["%h.example", "in-%h", "10.9.9.9", "a%%h", "UPPER.Example", "fe80::1%%eth0"],
    "Port": ["22", "2222", "2200"],
    "User": ["root", "deploy", "%h"],
    "IdentityFile": [
        *("~/k-%h", "/k/%r@%n", "/k/%%h", "/k/with blank", "none", "NONE", "/k/%p-%k"),
        *("${INTOP_KEYS}/%h", "/k/%i-%u-%L-%l", "%d/k"),
    ],
    "CertificateFile": ["/c/%h", "~/c-%r", "/c/%%n", "/c/with blank"],
    "IdentitiesOnly": ["yes", "no"],
    "IdentityAgent": [
        *("none", "SSH_AUTH_SOCK", "$INTOP_AGENT", "${INTOP_AGENT}/%h", "/run/%%h", "~/a"),
    ],
    "UserKnownHostsFile": ["/known/%h", "none", "~/known", "/known/%%h"],
    "GlobalKnownHostsFile": ["/everyone/%h", "none", "/everyone/a"],
    "HostKeyAlias": ["alias", "%h", "ALIAS"],
    "ConnectTimeout": ["0", "7", "none", "1m"],
    "BindAddress": ["10.0.0.9"],
    "AddressFamily": ["any", "inet", "inet6"],
    "ProxyJump": [
        *("gate", "j-%h", "%r@j-%n:2201", "gate,gate2", "g-%%h,gate2", "none", "NONE", "%k.x"),
        *("ssh://gate:23", "[::1]:22", "x-%n,%h-y", "a,b,gate-%p", "me@gate,you@gate2"),
        *("g-%%k,j-%k", "a-%%n-%%p,b-%%r,c"),
    ],
    "ProxyCommand": [
        *("true %h:%p %r %n %k", "none", "true %%h '%h'", "true ${HOME} %%"),
        "true  two  blanks # no comment",
    ],
}
WRONG = [
    *("Prot 22", "IgnoreUnknown Prot", "Port", 'User "open', "Match", "Host", "Port 70000"),
    *("HostName %n", "IdentityFile ${INTOP_NOWHERE}/k", "IdentityFile /k/%q", "IdentityFile /%C"),
    *("CertificateFile /c/%q", "IdentityAgent /a%q", "UserKnownHostsFile /known/%q", "User a b"),
    *("ConnectTimeout soon", "ProxyJump %d", "ProxyJump j-%q", "ProxyCommand true %u"),
    *("ProxyCommand true %", "ProxyJump a,,b", "HostKeyAlias a b", "IdentityFile", "Match web"),
]
"""What ssh refuses, or may: a few in a hundred lines, since one of them may end the file."""
BLANKS = ("HostName", "ProxyJump", "ProxyCommand")
"""Keywords whose values aren't put into quotes here."""
WAYS = ("HostName", "ProxyJump", "HostKeyAlias")
"""Keywords that others' tokens stand for, or that have most of them: more often than others."""
PATTERNS = ["web", "web*", "*", "!web1 *", "lb.*", "w?b", "10.0.0.*", "gate*", "j-*", "!gate *"]
MATCHES = [
    *("all", "host web*", "originalhost web", "user root", "user deploy", "!host gate*", "final"),
    *("final host *.example", 'exec "test %h = web"', "host web,gate* user root", "canonical all"),
    "localuser nobody",
]


@st.composite
def _lines(draw: st.DrawFn) -> str:
    """One line, with a keyword's cases, separators and quotes in the ways that ssh allows."""
    kind = draw(st.sampled_from(["value"] * 50 + ["host"] * 20 + ["match"] * 8 + ["no", "wrong"]))
    if kind == "host":
        return "Host " + draw(st.sampled_from(PATTERNS))
    if kind == "match":
        return "Match " + draw(st.sampled_from(MATCHES))
    if kind != "value":
        return draw(st.sampled_from(WRONG if kind == "wrong" else ["# a comment", "", "   "]))
    keyword = draw(st.sampled_from([*sorted(VALUES), *WAYS * 2]))
    value = draw(st.sampled_from(VALUES[keyword]))
    if keyword not in BLANKS and (" " in value or draw(st.booleans())):
        value = f'"{value}"'
    keyword = draw(st.sampled_from([keyword, keyword.lower(), keyword.upper()]))
    separator = draw(st.sampled_from([" ", "  ", "=", " = ", "\t"]))
    return f"{draw(st.sampled_from(['', '  ']))}{keyword}{separator}{value}"


LINES = st.lists(_lines(), min_size=4, max_size=14)


@dataclass(frozen=True)
class Read:
    """What ssh makes of its words. `jump` has those by which it would start another one."""

    options: dict[str, str]
    identities: tuple[Path, ...]
    certificates: tuple[Path, ...]
    command: str | None
    jump: list[str] | None


def as_ssh(folder: Path, words: list[str]) -> Read | None:
    """What the real ssh does with these words; None where it makes no connection."""
    asked = _ssh(folder, ["-G", *words])
    if asked.returncode != 0:
        return None
    options = dict(line.partition(" ")[::2] for line in asked.stdout.split("\n"))
    proxy = options.keys() & {"proxyjump", "proxycommand"}
    record = folder / "words"
    record.unlink(missing_ok=True)
    heard = _ssh(folder, ["-v", *([] if proxy else ["-o", SILENT]), *words, "true"]).stderr
    if not re.search("Local version string|kex_exchange_identification", heard):
        return None
    is_jump = "proxyjump" in options
    command = re.search(r"Executing proxy command: exec (.*)", heard)
    assert command is not None
    return Read(
        options,
        tuple(Path(file) for file in _files("identity", heard) if not file.endswith("-cert")),
        tuple(Path(file) for file in _files("certificate", heard)),
        command[1].rstrip("\r") if proxy and not is_jump else None,
        _without_tunnel(record.read_text().splitlines()) if is_jump else None,
    )


def _ssh(folder: Path, words: list[str]) -> "subprocess.CompletedProcess[str]":
    """Its programs are the record's ssh and a shell's own; it is never asked anything."""
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "INTOP_WORDS": str(folder / "words")}
    return subprocess.run(
        ["ssh", *words],
        executable="/usr/bin/ssh",
        env=dict(os.environ) | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=20,
    )


def _files(kind: str, heard: str) -> Iterator[str]:
    yield from re.findall(rf"debug1: {kind} file (.*) type -?\d+", heard)


def _without_tunnel(words: list[str]) -> list[str]:
    at = words.index("-W")
    return [word for word in [*words[:at], *words[at + 2 :]] if word != "-v"]


def compare(folder: Path, words: list[str], address: HostAddress, hop: int) -> str:
    """Whether both refuse, intop refuses, or both agree; an AssertionError where they differ."""
    expected = as_ssh(folder, words)
    try:
        result = route(address)
    except UnreachableError:
        return "refused" if _arrives(folder, expected) else "refused by both"
    assert expected is not None, result
    _agree(expected, result)
    if expected.jump is None or result.jump is None or hop >= MOST_HOPS:
        return "agreed"
    return compare(folder, expected.jump, result.jump, hop + 1)


def _arrives(folder: Path, read: Read | None, hops: int = MOST_HOPS) -> bool:
    """Whether ssh, and those that it starts for its jump hosts, would make their connections."""
    if read is None or read.jump is None or hops == 0:
        return read is not None
    return _arrives(folder, as_ssh(folder, read.jump), hops - 1)


def _agree(expected: Read, result: Route) -> None:
    options = expected.options
    assert options["hostname"] == result.hostname
    assert int(options["port"]) == result.port
    assert options["user"] == result.user
    assert expected.identities == result.identities
    assert expected.certificates == result.certificates
    assert (options["identitiesonly"] == "yes") == result.only_identities
    assert options.get("hostkeyalias", options["hostname"]) == result.known_as
    assert expected.command == result.command
    assert (expected.jump is None) == (result.jump is None)
    assert options.get("bindaddress") == result.bind_address
    limit = options.get("connecttimeout", "none")
    assert (15 if limit in ("0", "none") else int(limit)) == result.timeout_s
    listed = [options[f"{whose}knownhostsfile"].split() for whose in ("user", "global")]
    known = [Path(file) for files in listed for file in files if file != "none"]
    assert tuple(known) == result.known_hosts
    agent = options.get("identityagent", "SSH_AUTH_SOCK")
    by_name = {"none": None, "SSH_AUTH_SOCK": os.environ.get("SSH_AUTH_SOCK")}
    by_name["$INTOP_AGENT"] = ENVIRONMENT["INTOP_AGENT"]
    assert by_name.get(agent, agent) == result.agent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("as-ssh")
    (made / "ssh").write_text(RECORD)
    (made / "ssh").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        yield made


def test_hundreds_of_configurations_mean_what_they_mean_to_ssh(folder: Path) -> None:
    """A reader that refused everything would agree with ssh, too: so most must be understood."""
    outcomes: Counter[str] = Counter()

    @settings(max_examples=max(FILES, settings.default.max_examples if settings.default else 0))
    @given(LINES, LINES, st.integers(0, 14))
    def read(lines: list[str], more: list[str], at: int) -> None:
        (folder / "more").write_text("\n".join(more) + "\n")
        (folder / "more").chmod(0o600)
        config = folder / "config"
        config.write_text("\n".join([*lines[:at], f"Include {folder}/more", *lines[at:]]) + "\n")
        for name in NAMES:
            address = HostAddress(name=name, role="backend", hostname=name, ssh_config=str(config))
            outcomes[compare(folder, ["-F", str(config), name], address, 0)] += 1

    read()
    assert outcomes.total() >= 400
    assert outcomes.total() / 2 <= outcomes["agreed"], outcomes
    assert outcomes.total() / 50 >= outcomes["refused"], outcomes
