"""A host that is named on the command line."""

from dataclasses import replace

import pytest

from intop.config.cluster import host_address
from intop.domain.cluster import HostAddress
from intop.errors import UsageError


@pytest.mark.parametrize(
    ("word", "hostname", "given"),
    [
        ("lb", "lb", {}),
        ("10.0.0.5", "10.0.0.5", {}),
        ("alice@lb.example:2222", "lb.example", {"user": "alice", "port": 2222}),
        ("root@[fe80::1]:22", "fe80::1", {"user": "root", "port": 22}),
        ("[2001:db8::1]", "2001:db8::1", {}),
        ("alice@corp.example@lb", "lb", {"user": "alice@corp.example"}),
    ],
)
def test_a_host_can_be_named_as_ssh_names_it(
    word: str, hostname: str, given: dict[str, object]
) -> None:
    name = f"{hostname}:{given['port']}" if "port" in given else hostname
    plain = HostAddress(name=name, role="load-balancer", hostname=hostname)
    assert replace(plain, **given) == host_address(word)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("word", "name"),
    [("root@[fe80::1%eth0.5]", "fe80::1-eth0.5"), ("root@[fe80::1%eth0]:23", "fe80::1-eth0:23")],
)
def test_an_address_may_have_a_zone(word: str, name: str) -> None:
    """Its sign is none of a name, which stands in files' names and columns of tables."""
    result = host_address(word)
    assert (word[6 : word.index("]")], name) == (result.hostname, result.name)


def test_what_else_is_known_of_a_host_is_said_as_in_a_file() -> None:
    known = {"sudo": True, "state_dir": "/srv/intop", "key_file": "k", "known_hosts": "h"}
    result = host_address("lb", **known)  # type: ignore[arg-type]
    assert known == {name: getattr(result, name) for name in known}


@pytest.mark.parametrize(
    "word",
    ["", "@", "a@", "@lb", "lb:", "lb:ssh", "a b", "lb\n", "2001:db8::1", "[x]", "lb:22:22",
     "lb:-1", "[fe80::1%eth0;id]", "fe80::1%eth0"],
)  # fmt: skip
def test_what_is_no_host_is_refused_with_the_form(word: str) -> None:
    with pytest.raises(UsageError, match=r"is no host: \[USER@\]HOST\[:PORT\]"):
        host_address(word)


@pytest.mark.parametrize(
    ("word", "options", "place"),
    [
        ("lb:0", {}, "port"),
        ("lb:65536", {}, "port"),
        ("-oProxyCommand=true", {}, "hostname"),
        ("lb%eth0", {}, "hostname"),
        ("lb", {"state_dir": "relative"}, "state_dir"),
        ("lb", {"config_root": "relative"}, "config_root"),
        ("lb", {"config_root": "/srv/"}, "config_root"),
    ],
)
def test_what_a_file_may_not_say_of_a_host_is_refused_by_name(
    word: str, options: dict[str, str], place: str
) -> None:
    with pytest.raises(UsageError, match=f"^--host {word}: {place}: "):
        host_address(word, **options)
