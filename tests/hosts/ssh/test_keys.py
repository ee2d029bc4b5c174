"""Agents, key files and certificates with a real sshd and a real ssh-agent."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from intop.domain.cluster import HostAddress
from intop.errors import UnreachableError
from intop.hosts.host import output
from intop.hosts.ssh import connect

Keygen = Callable[..., Path]


@pytest.fixture
def encrypted(machine: Any, tmp_path: Path) -> Path:
    """The machine's key with a passphrase, without a .pub beside it."""
    file = tmp_path / "locked key"
    shutil.copy(machine.key, file)
    words = ["ssh-keygen", "-q", "-p", "-P", "", "-N", "a passphrase", "-f", str(file)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return file


def who(address: HostAddress) -> str:
    host = connect(address)
    try:
        return output(host, "id -un").strip()
    finally:
        host.close()


@pytest.fixture
def by_config(machine: Any, tmp_path: Path) -> Callable[[str], HostAddress]:
    """An address with these lines of OpenSSH's configuration in place of a key file."""

    def made(lines: str) -> HostAddress:
        config = tmp_path / "config"
        config.write_text(f"Host *\n{lines}\n")
        address: HostAddress = machine.address("plain", key_file=None, ssh_config=str(config))
        return address

    return made


@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
@pytest.mark.parametrize("form", ["OpenSSH", "PEM"])
def test_kinds_of_key_files(
    machine: Any, tmp_path: Path, keygen: Keygen, kind: str, form: str
) -> None:
    words = ("-m", "PEM") if form == "PEM" else ()
    key = keygen(tmp_path / "key", "-t", kind, *words)
    with allowed(machine, "plain", key):
        assert who(machine.address("plain", key_file=str(key))) == "plain"


class allowed:  # noqa: N801 - reads as a function
    """A further key of a user."""

    def __init__(self, machine: Any, user: str, key: Path) -> None:
        self.file = machine.folder / "authorized" / user
        self.public = Path(f"{key}.pub").read_text()

    def __enter__(self) -> None:
        self.before = self.file.read_text()
        self.file.write_text(self.before + self.public)

    def __exit__(self, *_: object) -> None:
        self.file.write_text(self.before)


def test_a_key_of_the_agent(
    machine: Any, agent: Path, add: Any, by_config: Callable[[str], HostAddress]
) -> None:
    add(agent, machine.key)
    assert who(by_config("IdentityFile none")) == "plain"


def test_the_agent_that_the_configuration_names(
    machine: Any,
    agent: Path,
    add: Any,
    by_config: Callable[[str], HostAddress],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add(agent, machine.key)
    monkeypatch.delenv("SSH_AUTH_SOCK")
    assert who(by_config(f"IdentityFile none\nIdentityAgent {agent}")) == "plain"
    with pytest.raises(UnreachableError, match=r"the agent has none to offer"):
        connect(by_config("IdentityFile none\nIdentityAgent none"))


def test_an_encrypted_key_is_the_agents_to_use(
    machine: Any, agent: Path, add: Any, encrypted: Path
) -> None:
    """One that the study names; others of the agent are not shown then."""
    address = machine.address("plain", key_file=str(encrypted))
    with pytest.raises(UnreachableError) as caught:
        connect(address)
    printed = str(caught.value)
    assert f"{encrypted} is encrypted, and the agent doesn't have it" in printed
    assert f"type ssh-add '{encrypted}' first" in printed
    add(agent, machine.key)
    assert who(address) == "plain"


def test_an_encrypted_key_beside_one_that_is_not(
    machine: Any, encrypted: Path, by_config: Callable[[str], HostAddress]
) -> None:
    assert (
        who(
            by_config(f'IdentityAgent none\nIdentityFile "{encrypted}"\nIdentityFile {machine.key}')
        )
        == "plain"
    )


def test_too_many_keys_of_the_agent(
    machine: Any,
    agent: Path,
    add: Any,
    tmp_path: Path,
    keygen: Keygen,
    by_config: Callable[[str], HostAddress],
) -> None:
    """sshd here takes four tries. An identity comes first, and IdentitiesOnly leaves the rest."""
    for number in range(6):
        add(agent, keygen(tmp_path / f"other{number}"))
    with pytest.raises(UnreachableError, match=r"other0 \(agent\).*hung up.*key_file"):
        connect(by_config("IdentityFile none"))
    only = f"IdentityFile {machine.key}\nIdentitiesOnly yes"
    assert who(by_config(only)) == "plain"
    add(agent, machine.key)
    assert who(by_config(f"IdentityFile {machine.key}")) == "plain"


def test_a_certificate_and_the_key_alone(machine: Any, tmp_path: Path, keygen: Keygen) -> None:
    """sshd trusts the authority; the key itself is in nobody's list."""
    key = keygen(tmp_path / "key")
    address = machine.address("plain", key_file=str(key))
    with pytest.raises(UnreachableError, match="refused the key"):
        connect(address)
    sign = ["ssh-keygen", "-q", "-s", str(machine.folder / "ca"), "-I", "test", "-n", "plain"]
    subprocess.run([*sign, f"{key}.pub"], check=True)
    assert who(address) == "plain"
    # One for somebody else does not keep the key itself from being tried.
    sign[-1] = "somebody"
    subprocess.run([*sign, f"{key}.pub"], check=True)
    with allowed(machine, "plain", key):
        assert who(address) == "plain"


KINDS = pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])


@pytest.fixture
def signed(machine: Any, tmp_path: Path, keygen: Keygen) -> Callable[..., tuple[Path, Path]]:
    """A key, and a certificate of it for a user; sshd trusts the authority alone."""

    def made(kind: str, user: str = "plain", name: str = "key") -> tuple[Path, Path]:
        key = keygen(tmp_path / name, "-t", kind)
        authority = str(machine.folder / "ca")
        sign = ["ssh-keygen", "-q", "-s", authority, "-I", "test", "-n", user, f"{key}.pub"]
        subprocess.run(sign, check=True)
        return key, key.with_name(f"{name}-cert.pub")

    return made


@KINDS
@pytest.mark.parametrize("where", ["file", "agent"])
def test_a_certificate_with_a_name_of_its_own(
    signed: Callable[..., tuple[Path, Path]],
    agent: Path,
    add: Any,
    by_config: Callable[[str], HostAddress],
    kind: str,
    where: str,
) -> None:
    key, certificate = signed(kind)
    other = certificate.rename(certificate.with_name("signed of web"))
    if where == "agent":
        add(agent, key)
        key.unlink()
    lines = f"IdentityFile {key}"
    with pytest.raises(UnreachableError, match="refused the key"):
        connect(by_config(lines))
    assert who(by_config(f'{lines}\nCertificateFile "{other.parent}/signed of web"')) == "plain"


@KINDS
def test_a_certificate_beside_a_key_that_the_agent_has(
    signed: Callable[..., tuple[Path, Path]],
    agent: Path,
    add: Any,
    by_config: Callable[[str], HostAddress],
    kind: str,
) -> None:
    """The file is encrypted, so the agent signs."""
    key, certificate = signed(kind)
    kept = certificate.rename(certificate.with_name("kept"))
    add(agent, key)
    kept.rename(certificate)
    words = ["ssh-keygen", "-q", "-p", "-P", "", "-N", "a passphrase", "-f", str(key)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    assert who(by_config(f"IdentityFile {key}\nIdentitiesOnly yes")) == "plain"


@KINDS
@pytest.mark.parametrize("user", ["plain", "somebody"])
def test_a_certificate_that_the_agent_has(
    machine: Any,
    signed: Callable[..., tuple[Path, Path]],
    agent: Path,
    add: Any,
    by_config: Callable[[str], HostAddress],
    kind: str,
    user: str,
) -> None:
    """ssh-add adds both; one for somebody else keeps the key itself from nothing."""
    key, certificate = signed(kind, user)
    add(agent, key)
    certificate.unlink()
    if user == "plain":
        assert who(by_config("IdentityFile none")) == "plain"
        assert who(by_config(f"IdentityFile {key}\nIdentitiesOnly yes")) == "plain"
    else:
        with allowed(machine, "plain", key):
            assert who(by_config("IdentityFile none")) == "plain"


@pytest.mark.parametrize(
    ("text", "printed"),
    [(None, "No such file"), ("", "it is no certificate"), ("ssh-rsa AAAA", "no certificate")],
)
def test_a_certificate_that_cannot_be_used_is_named(
    machine: Any,
    tmp_path: Path,
    keygen: Keygen,
    by_config: Callable[[str], HostAddress],
    text: str | None,
    printed: str,
) -> None:
    """It keeps no key from being tried."""
    file, key = tmp_path / "signed", keygen(tmp_path / "key")
    if text is not None:
        file.write_text(text)
    lines = f"IdentityAgent none\nCertificateFile {file}\nIdentityFile "
    with pytest.raises(
        UnreachableError, match=rf"{file} can't be used as a certificate \(.*{printed}"
    ):
        connect(by_config(f"{lines}{key}"))
    assert who(by_config(f"{lines}{machine.key}")) == "plain"


def test_a_public_key_selects_one_of_the_agents(
    machine: Any, agent: Path, add: Any, keygen: Keygen, tmp_path: Path, by_config: Any
) -> None:
    for number in range(6):
        add(agent, keygen(tmp_path / f"other{number}"))
    add(agent, machine.key)
    shutil.copy(f"{machine.key}.pub", tmp_path / "mine.pub")
    assert who(by_config(f"IdentityFile {tmp_path}/mine.pub\nIdentitiesOnly yes")) == "plain"


@pytest.mark.parametrize("text", ["", "nonsense", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"])
def test_a_file_that_is_no_key(machine: Any, tmp_path: Path, text: str) -> None:
    file = tmp_path / "key"
    file.write_text(text)
    with pytest.raises(UnreachableError, match=rf"no key for plain@.*{file} can't be used"):
        connect(machine.address("plain", key_file=str(file)))


def test_no_file_and_no_agent(machine: Any, tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match=rf"there is no {tmp_path}/key"):
        connect(machine.address("plain", key_file=str(tmp_path / "key")))


def test_an_agent_that_is_not_there(
    machine: Any, tmp_path: Path, by_config: Callable[[str], HostAddress]
) -> None:
    lines = f"IdentityAgent {tmp_path}/gone\nIdentityFile {{}}"
    assert who(by_config(lines.format(machine.key))) == "plain"
    with pytest.raises(UnreachableError, match=rf"{tmp_path}/gone is no agent that answers"):
        connect(by_config(lines.format("none")))


def test_a_security_key_is_the_agents_to_use(machine: Any, tmp_path: Path) -> None:
    """Only its public part is looked at; there is no such device here."""
    public = "AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29t"
    (tmp_path / "key").write_text("whatever")
    (tmp_path / "key.pub").write_text(f"sk-ssh-ed25519@openssh.com {public} me\n")
    with pytest.raises(UnreachableError, match=r"sk-ssh-ed25519@openssh.com key.*ssh-add"):
        connect(machine.address("plain", key_file=str(tmp_path / "key")))
