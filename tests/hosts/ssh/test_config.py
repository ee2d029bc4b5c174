"""What OpenSSH's configuration says of a host, and that a study's own words come first."""

import getpass
import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest

from intop.domain.cluster import HostAddress
from intop.errors import UnreachableError
from intop.hosts.ssh.config import Route, by_hand, route

CONFIG = """\
Include {folder}/more/*.conf

Host bal
    HostName 10.0.0.1
    Port 2222
    User deploy
    IdentityFile {folder}/%r@%n
    IdentityFile ~/two
    IdentitiesOnly yes
    IdentityAgent {folder}/agent
    UserKnownHostsFile {folder}/known {folder}/known2
    HostKeyAlias the-balancer
    ConnectTimeout 7

Host near
    ProxyJump me@one:2201,ssh://two:2202,[::1]:2203

Host through
    HostName inner.example
    ProxyCommand connect --to %h:%p --as %r %%

Host none
    ProxyCommand none
    IdentityFile none
    IdentityAgent none

Match host matched exec "test -e {folder}/go"
    Port 2300

Host *
    ConnectTimeout 9
"""

Ask = Callable[..., Route]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.conf").write_text("Host included\n  Port 2400\n")
    config = tmp_path / "config"
    config.write_text(CONFIG.format(folder=tmp_path))

    def asked(hostname: str, **said: object) -> Route:
        others = {"ssh_config": str(config), **said}
        return route(HostAddress(name="lb", role="backend", hostname=hostname, **others))  # type: ignore[arg-type]

    return asked


def test_an_alias_is_what_the_configuration_says(ask: Ask, tmp_path: Path) -> None:
    result = ask("bal")
    assert result.where == "deploy@10.0.0.1:2222"
    assert (tmp_path / "deploy@bal", Path.home() / "two") == result.identities
    assert result.only_identities
    assert str(tmp_path / "agent") == result.agent
    assert (tmp_path / "known", tmp_path / "known2") == result.known_hosts[:2]
    assert result.known_as == "the-balancer"
    assert result.timeout_s == 7
    assert result.jump is None
    assert result.command is None


def test_the_studys_own_words_come_first(ask: Ask, tmp_path: Path) -> None:
    known = tmp_path / "mine"
    known.touch()
    gate = HostAddress(name="gate", role="backend", hostname="gate")
    own = {"port": 22, "user": "me", "key_file": "~/k", "known_hosts": str(known), "jump": gate}
    result = ask("bal", **own)
    assert result.where == "me@10.0.0.1:22"
    assert (Path.home() / "k",) == result.identities
    assert (known,) == result.known_hosts
    assert gate is result.jump
    assert gate is ask("through", jump=gate).jump
    assert ask("through", jump=gate).command is None


def test_who_is_named_nowhere_is_root_at_port_22(ask: Ask) -> None:
    result = ask("10.9.9.9")
    assert (result.where, result.timeout_s) == ("root@10.9.9.9:22", 9)
    assert Path.home() / ".ssh/id_ed25519" in result.identities
    assert Path.home() / ".ssh/known_hosts" in result.known_hosts
    assert not result.only_identities


def test_without_openssh(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/the/agent")
    result = ask("bal", ssh_config="none")
    assert (result.where, result.agent, result.known_as) == ("root@bal:22", "/the/agent", "bal")
    assert Path.home() / ".ssh/id_ed25519" in result.identities
    assert (Path.home() / ".ssh/known_hosts",) == result.known_hosts
    with pytest.raises(UnreachableError, match=r'lb: .*openssh-client.*ssh_config = "none"'):
        ask("bal")


def test_the_usual_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host bal\n  Port 2500\n")
    address = HostAddress(name="lb", role="backend", hostname="bal")
    assert route(address).where == "root@bal:2500"
    (tmp_path / ".ssh" / "config").unlink()
    assert route(address).where == "root@bal:22"


def test_files_that_are_included_and_matches(ask: Ask, tmp_path: Path) -> None:
    assert ask("included").port == 2400
    assert ask("matched").port == 22
    (tmp_path / "go").touch()
    assert ask("matched").port == 2300


def test_several_hops_each_behind_the_one_before(ask: Ask) -> None:
    last = ask("near").jump
    assert last is not None
    middle = last.jump
    assert middle is not None
    first = middle.jump
    assert first is not None
    assert first.jump is None
    # Who has no name of a user there is what ssh would be: not root.
    me = getpass.getuser()
    assert (first.user, first.hostname, first.port) == ("me", "one", 2201)
    assert (me, "two", 2202) == (middle.user, middle.hostname, middle.port)
    assert (me, "::1", 2203) == (last.user, last.hostname, last.port)
    assert middle.name == "jump host two"


def test_a_command_gets_what_its_tokens_stand_for(ask: Ask) -> None:
    assert ask("through").command == "connect --to inner.example:22 --as root %"


def test_none_is_none(ask: Ask) -> None:
    result = ask("none")
    assert (result.command, result.identities, result.agent) == (None, (), None)


@pytest.mark.parametrize(
    "hostname", ["$(touch x)", "a;b", "a`b`", "-oProxyCommand=x", "a b", "a\nb"]
)
@pytest.mark.parametrize("where", ["usual", "none"])
def test_names_that_a_shell_would_take_for_more_are_refused(
    ask: Ask, hostname: str, where: str
) -> None:
    config = {"ssh_config": "none"} if where == "none" else {}
    with pytest.raises(UnreachableError):
        ask(hostname, **config)
    with pytest.raises(UnreachableError, match="can't be the name of a user"):
        ask("bal", user=hostname, ssh_config="none")


def test_a_wrong_file_is_named_with_its_line(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "config").write_text("Host a\n  Prot 22\n")
    with pytest.raises(UnreachableError, match=r"(?s)lb: .*config.*line 2: .*prot.*Correct that"):
        ask("a")
    with pytest.raises(UnreachableError, match=r"ssh_config file .*/nowhere is not there"):
        ask("a", ssh_config=str(tmp_path / "nowhere"))


def test_files_in_nobodys_home(ask: Ask) -> None:
    assert (Path("~nosuchuser/key"),) == ask("bal", key_file="~nosuchuser/key").identities
    with pytest.raises(UnreachableError, match="known_hosts file ~nosuchuser/x can't be read"):
        ask("bal", known_hosts="~nosuchuser/x")
    with pytest.raises(UnreachableError, match=r"ssh_config file .*~nosuchuser/x is not there"):
        ask("bal", ssh_config="~nosuchuser/x")


def test_a_jump_that_is_no_host(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "config").write_text("Host a\n  ProxyJump ssh://\n")
    with pytest.raises(UnreachableError, match="lb: "):
        ask("a")


# What `ssh -G` leaves to its reader ---------------------------------------------------------------


@pytest.fixture
def says(tmp_path: Path) -> Callable[..., Route]:
    """The route to `web`, by a configuration of these lines."""

    def routed(lines: str, **output: object) -> Route:
        config = tmp_path / "config"
        config.write_text(lines.format(folder=tmp_path) + "\n")
        output = {"hostname": "web", "ssh_config": str(config), **output}
        return route(HostAddress(name="lb", role="backend", **output))  # type: ignore[arg-type]

    return routed


def hops(jump: HostAddress | None) -> list[tuple[str | None, str, int | None]]:
    """The first hop first."""
    return [] if jump is None else [*hops(jump.jump), (jump.user, jump.hostname, jump.port)]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("ProxyJump j-%h", [("me", "j-web", None)]),
        ("HostName inner\nPort 2222\nProxyJump %h-%p-%n", [("me", "inner-2222-web", None)]),
        ("User deploy\nProxyJump %r-jump@gate:2201", [("deploy-jump", "gate", 2201)]),
        ("HostKeyAlias known\nProxyJump %k", [("me", "known", None)]),
        ("ProxyJump a%%b", [("me", "a%b", None)]),
        ("ProxyJump a-%h,b-%h", [("me", "a-web", None), ("me", "b-web", None)]),
        # The second ssh expands what the first has left: for its own host.
        ("ProxyJump a-%%h,b", [("me", "a-b", None), ("me", "b", None)]),
        ("ProxyJump ssh://a,ssh://b:23/", [("me", "a", None), ("me", "b", 23)]),
    ],
)
def test_jump_hosts_have_their_tokens_replaced(
    says: Callable[..., Route], lines: str, expected: list[tuple[str, str, int | None]]
) -> None:
    me = getpass.getuser()
    expected = [(me if user == "me" else user, *other) for user, *other in expected]  # type: ignore[misc]
    assert hops(says(f"Host web\n{lines}").jump) == expected


@pytest.mark.parametrize(
    "line",
    [
        "ProxyJump %d-gate",
        "ProxyJump %C",
        "ProxyCommand nc %q",
        "ProxyCommand nc %u",
        "ProxyCommand nc %",
        "IdentityFile /%q",
        "IdentityFile /%C",
        "IdentityFile /${{INTOP_NOWHERE}}/key",
        "CertificateFile /%j",
    ],
)
def test_tokens_that_stand_for_nothing_are_refused(says: Callable[..., Route], line: str) -> None:
    keyword = line.split()[0]
    with pytest.raises(UnreachableError, match=rf"lb: {keyword} .*configuration can't be used: "):
        says(line)


def test_hosts_on_a_known_way_need_none_of_the_configuration(says: Callable[..., Route]) -> None:
    """Its own for `gate` would be a loop, which ssh refuses."""
    last = says("Host web\nProxyJump first,gate\nHost g*\nProxyJump gate").jump
    assert last is not None
    assert [hostname for _, hostname, _ in hops(last)] == ["first", "gate"]
    assert last.jump is route(last).jump
    with pytest.raises(UnreachableError, match=r"jump host gate: .*loop"):
        says("Host *\nProxyJump gate")


def test_what_the_study_says_needs_no_tokens(says: Callable[..., Route]) -> None:
    gate = HostAddress(name="gate", role="backend", hostname="gate")
    assert gate is says("ProxyJump %q", jump=gate).jump
    assert (Path("/key%q"),) == says("IdentityFile /%q", key_file="/key%q").identities


def test_a_token_is_replaced_once(
    says: Callable[..., Route], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PART", "%h")
    monkeypatch.setenv("LOGNAME", "somebody")
    me = pwd.getpwuid(os.getuid()).pw_name
    lines = (
        "IdentityFile /${{PART}}/%%h/%u/%k\nUserKnownHostsFile /%%h\nProxyCommand x ${{PART}} %%h"
    )
    result = says(lines)
    assert (Path(f"/%h/%h/{me}/web"),) == result.identities
    assert Path("/%h") == result.known_hosts[0]
    assert result.command == "x ${PART} %h"


def test_agents_named_by_a_variable(
    says: Callable[..., Route], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTS", "/run/agents")
    assert says("IdentityAgent ${{AGENTS}}/one-%h").agent == "/run/agents/one-web"
    assert says("IdentityAgent $AGENTS").agent == "/run/agents"
    assert says("IdentityAgent /run/%%h").agent == "/run/%h"


@pytest.mark.parametrize(
    ("lines", "port"),
    [
        ("Match final\n Port 2200", 2200),
        ("HostName inner\nMatch final host inner\n Port 2200", 2200),
        ("Match user root\n Port 2200", 2200),
        ("CanonicalizeHostname yes\nMatch canonical\n Port 2200", 2200),
        ("Match final user nobody\n Port 2200", 22),
    ],
)
def test_the_second_reading_and_the_user_count(
    says: Callable[..., Route], lines: str, port: int
) -> None:
    assert port == says(lines).port


def test_who_we_are_by_default_is_known_to_the_configuration(
    says: Callable[..., Route], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("intop.hosts.ssh.config.DEFAULT_USER", "somebody")
    me = pwd.getpwuid(os.getuid()).pw_name
    assert user_and_port(says("Match user somebody\n Port 2200")) == ("somebody", 2200)
    assert (me, 22) == user_and_port(says(f"User {me}\nMatch user somebody\n Port 2200"))
    assert user_and_port(says("Match final\n User deploy\n")) == ("deploy", 22)
    assert user_and_port(says(f"User {me}", user="a")) == ("a", 22)


def user_and_port(result: Route) -> tuple[str, int]:
    return result.user, result.port


def test_a_file_with_any_name_and_permissions_is_read(tmp_path: Path) -> None:
    """As by ssh -F; in an Include it would be a pattern, and refused where others may write."""
    config = tmp_path / 'a "[file]" *'
    config.write_text("Port 2200")
    config.chmod(0o666)
    address = HostAddress(name="lb", role="backend", hostname="web", ssh_config=str(config))
    assert route(address).port == 2200


@pytest.mark.parametrize("value", ["0", "none"])
def test_no_limit_of_time_is_ours(says: Callable[..., Route], value: str) -> None:
    assert says(f"ConnectTimeout {value}").timeout_s == 15


def test_known_hosts_of_another_name_have_no_port(says: Callable[..., Route]) -> None:
    result = says("Port 2222\nHostKeyAlias alias")
    assert (result.known_as, result.known_port) == ("alias", 22)
    result = says("Port 2222")
    assert (result.known_as, result.known_port) == ("web", 2222)


def test_known_hosts_files_with_blanks(says: Callable[..., Route], tmp_path: Path) -> None:
    for name in ("a file", "of known hosts"):
        (tmp_path / name).touch()
    lines = 'UserKnownHostsFile "{folder}/a file" ~/known "{folder}/of known hosts" /x y'
    expected = (tmp_path / "a file", Path.home() / "known", tmp_path / "of known hosts")
    assert (*expected, Path("/x"), Path("y")) == says(lines).known_hosts[:5]


def test_what_would_lead_elsewhere_is_refused(says: Callable[..., Route]) -> None:
    with pytest.raises(UnreachableError, match=r"lb: .*BindInterface eth1.*write BindAddress"):
        says("BindInterface eth1")
    assert says("BindInterface eth1\nHost web\n ProxyJump gate").hostname == "web"
    assert says("BindInterface eth1\nBindAddress 10.0.0.1").bind_address == "10.0.0.1"
    with pytest.raises(UnreachableError, match=r"lb: .*ProxyUseFdpass yes.*ProxyCommand pass"):
        says("ProxyUseFdpass yes\nProxyCommand nc -F %h %p")
    assert says("ProxyUseFdpass yes").hostname == "web"


def test_an_address_with_a_zone(says: Callable[..., Route]) -> None:
    assert says("", hostname="fe80::1%eth0").hostname == "fe80::1%eth0"
    assert says("HostName fe80::1%%eth0").hostname == "fe80::1%eth0"
    gate = HostAddress(name="gate", role="backend", hostname="fe80::1%eth0")
    address = HostAddress(
        name="lb", role="backend", hostname="fe80::2%eth1", ssh_config="none", jump=gate
    )
    line = "ssh -F none -J 'root@[fe80::1%%eth0]:22' -p 22 -l root fe80::2%eth1 true"
    assert line == by_hand(address, route(address))


def test_the_line_to_type_says_what_the_study_says() -> None:
    gate = HostAddress(name="gate", role="backend", hostname="gate", user="me")
    output = {"port": 23, "key_file": "/a key", "ssh_config": "none", "jump": gate}
    address = HostAddress(name="lb", role="backend", hostname="bal", **output)  # type: ignore[arg-type]
    line = "ssh -F none -i '/a key' -J me@gate:22 -p 23 -l root bal true"
    assert line == by_hand(address, route(address))
