"""Known hosts as OpenSSH writes and reads them, its own tools being the judges."""

import re
import subprocess
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

import pytest

from intop.hosts.ssh.known_hosts import kinds, known_name, refusal, revocation

Keygen = Callable[..., Path]


@pytest.fixture
def key(tmp_path: Path, keygen: Keygen) -> tuple[str, bytes]:
    return public(keygen(tmp_path / "key"))


@pytest.fixture
def other(tmp_path: Path, keygen: Keygen) -> tuple[str, bytes]:
    return public(keygen(tmp_path / "other"))


def public(file: Path) -> tuple[str, bytes]:
    kind, encoded = Path(f"{file}.pub").read_text().split()[:2]
    return kind, b64decode(encoded)


def listed(tmp_path: Path, names: str, file: str = "key", marker: str = "") -> Path:
    known = tmp_path / "known_hosts"
    text = (tmp_path / f"{file}.pub").read_text()
    with known.open("a") as lines:
        lines.write(f"# a comment\n\n{marker}{names} {text}")
    return known


@pytest.mark.parametrize(
    ("names", "hostname", "port"),
    [
        ("lb.example", "lb.example", 22),
        ("LB.example", "lb.EXAMPLE", 22),
        ("10.0.0.1,lb.example", "lb.example", 22),
        ("[lb.example]:2222", "lb.example", 2222),
        ("lb.example", "lb.example", 2222),  # as ssh: known at its usual port
        ("*.example", "lb.example", 22),
        ("lb?.example,!lb2.example", "lb1.example", 22),
        ("[*.example]:2222", "lb.example", 2222),
        ("::1", "::1", 22),
    ],
)
def test_a_known_key(
    tmp_path: Path, key: tuple[str, bytes], names: str, hostname: str, port: int
) -> None:
    known = listed(tmp_path, names)
    assert refusal([tmp_path / "none", known], hostname, port, *key) is None
    assert kinds([known], hostname, port) == {"ssh-ed25519"}


@pytest.mark.parametrize(
    ("names", "hostname", "port"),
    [
        ("other.example", "lb.example", 22),
        ("[lb.example]:2222", "lb.example", 22),
        ("lb?.example,!lb2.example", "lb2.example", 22),
        ("lb.example", "lb.example.evil.org", 22),
        ("lbxexample", "lb.example", 22),
        ("|1|nonsense|", "lb.example", 22),
    ],
)
def test_an_unknown_host(
    tmp_path: Path, key: tuple[str, bytes], names: str, hostname: str, port: int
) -> None:
    known = listed(tmp_path, names)
    assert "is not known: SHA256:" in str(refusal([known], hostname, port, *key))


@pytest.mark.parametrize("port", [22, 2222])
def test_hashed_names(tmp_path: Path, key: tuple[str, bytes], port: int) -> None:
    known = listed(tmp_path, known_name("lb.example", port))
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(known)], check=True, capture_output=True)
    assert "lb.example" not in known.read_text()
    assert refusal([known], "lb.example", port, *key) is None
    assert "not known" in str(refusal([known], "lb2.example", port, *key))


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("port", [22, 2222])
def test_the_lines_for_a_changed_and_an_unknown_key_work_as_typed(
    tmp_path: Path, key: tuple[str, bytes], other: tuple[str, bytes], port: int, hashed: bool
) -> None:
    folder = tmp_path / "it's a folder"
    folder.mkdir()
    known = listed(tmp_path, known_name("lb.example", port), "other").rename(folder / "known")
    if hashed:
        subprocess.run(["ssh-keygen", "-H", "-f", str(known)], check=True, capture_output=True)
    output = str(refusal([known], "lb.example", port, *key))
    assert f"not the known one ({known}, line 3)" in output
    type_in(output, "remove the old key with: ")
    output = str(refusal([known], "lb.example", port, *key))
    printed = subprocess.check_output(["ssh-keygen", "-lf", str(tmp_path / "key.pub")], text=True)
    assert f"is not known: {printed.split()[1]} (ssh-ed25519)" in output
    type_in(output, "add it with: ")
    assert refusal([known], "lb.example", port, *key) is None
    result = ["ssh-keygen", "-f", str(known), "-F", known_name("lb.example", port)]
    assert "ssh-ed25519" in subprocess.check_output(result, text=True)


def type_in(output: str, before: str) -> None:
    subprocess.run(["sh", "-euc", output.split(before)[1]], check=True, capture_output=True)


def test_a_file_whose_folder_is_missing_is_made(tmp_path: Path, key: tuple[str, bytes]) -> None:
    known = tmp_path / "new" / "known_hosts"
    type_in(str(refusal([known], "lb.example", 22, *key)), "add it with: ")
    assert refusal([known], "lb.example", 22, *key) is None


def test_a_further_key_of_the_host_is_known_too(
    tmp_path: Path, key: tuple[str, bytes], other: tuple[str, bytes]
) -> None:
    known = listed(tmp_path, "lb.example", "other")
    listed(tmp_path, "lb.example")
    assert refusal([known], "lb.example", 22, *key) is None
    assert refusal([known], "lb.example", 22, *other) is None


def test_a_revoked_key_is_refused_though_it_is_listed(
    tmp_path: Path, key: tuple[str, bytes]
) -> None:
    known = listed(tmp_path, "lb.example")
    listed(tmp_path, "*", marker="@revoked ")
    assert "marked as revoked" in str(refusal([known], "lb.example", 22, *key))


@pytest.mark.parametrize(("names", "port"), [("*.example", 22), ("[lb.example]:2222", 2222)])
def test_an_authority_for_the_host_is_named_where_its_key_is_not_known(
    tmp_path: Path, key: tuple[str, bytes], other: tuple[str, bytes], names: str, port: int
) -> None:
    known = listed(tmp_path, names, marker="@cert-authority ")
    note = rf"The @cert-authority of {known}, line 3, is for this host, but intop can't check"
    output = str(refusal([known], "lb.example", port, *key))
    assert re.search(
        rf"is not known: SHA256:.*{note} .*the host's own key. If .*add it with: ", output
    )
    assert kinds([known], "lb.example", port) == set()
    assert "@cert-authority" not in str(refusal([known], "elsewhere.test", port, *key))
    listed(tmp_path, known_name("lb.example", port), "other")
    output = str(refusal([known], "lb.example", port, *key))
    assert re.search(rf"not the known one \({known}, line 6\).*{note} .*remove the old key", output)
    assert refusal([known], "lb.example", port, *other) is None


def test_a_line_with_another_marker_is_none(tmp_path: Path, key: tuple[str, bytes]) -> None:
    known = listed(tmp_path, "lb.example", marker="@unheard-of ")
    assert "not known" in str(refusal([known], "lb.example", 22, *key))


def test_a_way_to_keys_that_is_not_followed_is_named(
    tmp_path: Path, key: tuple[str, bytes]
) -> None:
    output = refusal([tmp_path / "known"], "lb", 22, *key, ignored="KnownHostsCommand")
    assert "intop doesn't run KnownHostsCommand, which ssh asks for keys. If" in str(output)


@pytest.mark.parametrize("form", ["text", "KRL"])
def test_keys_that_a_list_revokes(
    tmp_path: Path, key: tuple[str, bytes], other: tuple[str, bytes], form: str
) -> None:
    file = tmp_path / "revoked"
    if form == "KRL":
        words = ["ssh-keygen", "-q", "-k", "-f", str(file), str(tmp_path / "key.pub")]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    else:
        file.write_text(f"# lost\n{(tmp_path / 'key.pub').read_text()}")
    assert f"its host key is revoked in {file}" in str(revocation(file, *key))
    assert revocation(file, *other) is None
    assert "can't be read" in str(revocation(tmp_path / "none", *other))


def test_no_file_is_in_use(key: tuple[str, bytes]) -> None:
    assert "known_hosts" in str(refusal([Path("/dev/null")], "lb.example", 22, *key))


@pytest.mark.parametrize("line", ["", "lb", "lb ssh-rsa", "lb ssh-rsa !!!", "\x00\xff", "@revoked"])
def test_lines_that_are_none(tmp_path: Path, line: str) -> None:
    known = tmp_path / "known_hosts"
    known.write_bytes(line.encode("latin-1") + b"\n")
    assert kinds([known], "lb", 22) == set()
