"""Real nginx.conf files: read, changed as little as possible, and still accepted by nginx.

    python -m benchmarks.nginx_files FOLDER [--configurations 10] [--markdown]

Each folder in FOLDER is what one project has as /etc/nginx; its nginx.conf is the first file, or one
that only has servers, which is then included in a bare one. None of these files is in this repository.

A project's files name hosts, certificates, users and modules that this machine has not. So nginx is
asked in a private root (an overlay over this machine's, in a mount namespace that ends with the
script) into which is put what it misses. A directive that this nginx does not know is blanked out.
Then the script draws configurations of all that intop offers there. It says how many nginx accepts,
and whether the diff has lines that are not ours. Needs root.
"""

import argparse
import datetime
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path

import numpy as np
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from intop.config.directives import load_directives
from intop.domain.nginx.conf import Conf, parse_shown
from intop.domain.nginx.directive import NginxFacts
from intop.domain.nginx.edits import changed
from intop.domain.nginx.offer import offer
from intop.domain.nginx.permitted import BY_NAME, PREFIX
from intop.domain.nginx.standing import Directives, standing
from intop.domain.nginx.syntax import Statement, parse

CATALOGUE = Path(__file__).parents[1] / "configs" / "nginx.toml"
MOST_MENDED = 200
BARE = "events {}\nhttp {\n    include /etc/nginx/project.conf;\n}\n"
COMPANIONS = {"proxy_set_header"}


@dataclass
class Root:
    """A root of its own: `upper` has what differs from this machine's."""

    folder: Path
    pair: str
    mended: list[str] = field(default_factory=list)

    @property
    def upper(self) -> Path:
        return self.folder / "upper"

    @property
    def merged(self) -> Path:
        return self.folder / "merged"

    def mount(self) -> None:
        for name in ("upper", "work", "merged"):
            (self.folder / name).mkdir(parents=True)
        options = f"lowerdir=/,upperdir={self.upper},workdir={self.folder / 'work'}"
        _run("mount", "-t", "overlay", "intop", "-o", options, str(self.merged))
        _run("mount", "--bind", "/dev", str(self.merged / "dev"))

    def unmount(self) -> None:
        _run("umount", str(self.merged / "dev"))
        _run("umount", str(self.merged))

    def path(self, path: str) -> Path:
        return self.merged / path.lstrip("/")

    def write(self, path: str, text: str, mode: str = "w") -> None:
        self.path(path).parent.mkdir(parents=True, exist_ok=True)
        with self.path(path).open(mode, newline="", errors="surrogateescape") as file:
            file.write(text)

    def nginx(self, option: str) -> subprocess.CompletedProcess[str]:
        command = ["chroot", str(self.merged), "nginx", option, "-c", "/etc/nginx/nginx.conf"]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, errors="surrogateescape"
        )

    def mend(self) -> str:
        """Put into the root what nginx misses, until it accepts the files; else its last words."""
        for _ in range(MOST_MENDED):
            ended = self.nginx("-t")
            if ended.returncode == 0:
                return ""
            words = next(
                (line for line in ended.stderr.splitlines() if "[emerg]" in line), ended.stderr
            )
            if not self._mend(words):
                return words.strip()
        return "too much is missing"

    def _mend(self, words: str) -> bool:
        made = (
            self._mend_host(words)
            or self._mend_user(words)
            or self._mend_certificate(words)
            or self._mend_file(words)
            or self._blank(words)
        )
        if made:
            self.mended.append(made)
        return bool(made)

    def _mend_host(self, words: str) -> str:
        found = re.search(r'(?:host not found in (?:upstream|resolver)|host) "([^":/ ]+)', words)
        if found is None or "host not found" not in words:
            return ""
        self.write("/etc/hosts", f"127.0.0.1 {found[1]}\n", "a")
        return "host"

    def _mend_user(self, words: str) -> str:
        found = re.search(r'get(pw|gr)nam\("([^"]+)"\) failed', words)
        if found is None:
            return ""
        if found[1] == "pw":
            self.write("/etc/passwd", f"{found[2]}:x:33:33::/:/bin/false\n", "a")
        self.write("/etc/group", f"{found[2]}:x:33:\n", "a")
        return "user"

    def _mend_certificate(self, words: str) -> str:
        found = re.search(r'cannot load certificate(?: key)? "([^"]+)"', words)
        found = found or re.search(
            r'(?:SSL_CTX_load_verify_locations|BIO_new_file)\("([^"]+)"', words
        )
        if found is None or self.path(found[1]).exists():
            return ""
        if "dh" in Path(found[1]).name:
            made = subprocess.run(
                ["openssl", "dhparam", "-dsaparam", "1024"],
                capture_output=True,
                text=True,
                check=True,
            )
            self.write(found[1], made.stdout)
        else:
            self.write(found[1], self.pair)
        return "certificate"

    def _mend_file(self, words: str) -> str:
        found = re.search(r'(open|mkdir|stat)\(\) "([^"]+)" failed \(2:', words)
        if found is None:
            return ""
        path = found[2]
        if found[1] == "mkdir":
            self.path(path).parent.mkdir(parents=True, exist_ok=True)
        else:
            self.write(path, "")
        return "file"

    def _blank(self, words: str) -> str:
        """Blank out a statement that this nginx does not know, its line ends left in place."""
        found = re.search(r" in (/[^ ]+):([0-9]+)$", words.strip())
        is_known = re.search(
            r"unknown directive|invalid parameter|unknown \"|dlopen\(\)|invalid value|is not allowed",
            words,
        )
        if found is None or is_known is None:
            return ""
        path = self.path(found[1])
        text = path.read_text(errors="surrogateescape")
        statement = _statement_at(parse(text, found[1]).statements, int(found[2]), text)
        if statement is None:
            return ""
        blank = re.sub(r"[^\n]", " ", text[statement.start : statement.end])
        self.write(found[1], text[: statement.start] + blank + text[statement.end :])
        return "statement"


def _statement_at(statements: tuple[Statement, ...], line: int, text: str) -> Statement | None:
    """The innermost statement that nginx's line, the last of its head, belongs to."""
    for statement in statements:
        head_end = statement.inner or statement.end
        last = text.count("\n", 0, head_end) + 1
        if statement.line <= line <= last and not (
            statement.body and line > statement.line and last == line and False
        ):
            return statement
        found = _statement_at(statement.body or (), line, text)
        if found is not None:
            return found
    return None


@dataclass(frozen=True)
class Result:
    """What came of one project."""

    name: str
    files: int
    statements: int
    mended: int
    stand: int
    offered: int
    accepted: int
    drawn: int
    removed: float
    added: float
    strange: int
    words: str = ""


def study(name: str, root: Root, directives: Directives, count: int) -> Result:
    """One project, whose files are in place."""
    words = root.mend()
    if words:
        return Result(name, 0, 0, len(root.mended), 0, 0, 0, 0, 0, 0, 0, words)
    shown = parse_shown(root.nginx("-T").stdout)
    for path, source in shown.sources.items():
        with root.path(path).open(newline="", errors="surrogateescape") as file:
            if file.read() != source.text:
                raise SystemExit(f"{name}: {path} is not as nginx -T shows it")
    facts = _facts(root)
    names = {PREFIX + key for key in BY_NAME}
    found = offer(directives, shown, facts, "high", by_name=names)
    rng = np.random.default_rng(1)
    values = found.space.decode(rng.random((count, len(found.space.columns))))
    accepted, removed, added, strange = 0, 0, 0, 0
    for configuration in found.space.configurations(values):
        result = changed(directives, shown, configuration.values, facts)
        for path, text in result.texts.items():
            root.write(path, text)
        ended = root.nginx("-t")
        accepted += ended.returncode == 0
        words = words or ("" if ended.returncode == 0 else ended.stderr.strip().splitlines()[-2])
        again = parse_shown(root.nginx("-T").stdout) if ended.returncode == 0 else shown
        if ended.returncode == 0:
            strange += bool(changed(directives, again, configuration.values, facts).texts)
        gone, come, others = _diff(shown, result.texts, directives)
        removed, added, strange = removed + gone, added + come, strange + others
        for path in result.texts:
            root.write(path, shown.sources[path].text)
    return Result(
        name,
        len(shown.sources),
        len(shown.places),
        len(root.mended),
        sum(bool((s := standing(shown, d)).own or s.inner) for d in directives.by_key.values()),
        len(found.space.parameters),
        accepted,
        count,
        removed / count,
        added / count,
        strange,
        words,
    )


def _diff(conf: Conf, texts: Mapping[str, str], directives: Directives) -> tuple[int, int, int]:
    """Lines that a diff takes away and adds, and those of them that are not ours."""
    ours = {d.name for d in directives.by_key.values()} | COMPANIONS
    pattern = re.compile(rf"\b({'|'.join(sorted(ours))})\b")
    gone = come = strange = 0
    for path, text in texts.items():
        old = conf.sources[path].text.splitlines()
        for line in unified_diff(old, text.splitlines(), lineterm="", n=0):
            if line.startswith(("---", "+++", "@@")):
                continue
            gone += line.startswith("-")
            come += line.startswith("+")
            strange += pattern.search(line) is None
    return gone, come, strange


def _facts(root: Root) -> NginxFacts:
    return NginxFacts.of(
        root.nginx("-V").stderr,
        kernel=platform.release(),
        cpus=os.cpu_count() or 1,
        page_bytes=os.sysconf("SC_PAGESIZE"),
        nofile=1024,
    )


def _pair() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "example")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return (made.public_bytes(serialization.Encoding.PEM) + secret).decode()


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


def _place(project: Path, root: Root) -> None:
    """A project's files as /etc/nginx, over Debian's."""
    shutil.copytree(project, root.path("/etc/nginx"), dirs_exist_ok=True)
    main = root.path("/etc/nginx/nginx.conf")
    text = main.read_text(errors="surrogateescape")
    if not any(s.name == "events" for s in parse(text, str(main)).statements):
        root.write("/etc/nginx/project.conf", text)
        root.write("/etc/nginx/nginx.conf", BARE)


def main() -> None:
    """In a mount namespace of its own: the script starts itself again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--configurations", type=int, default=10)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.inside:
        command = ["unshare", "--mount", sys.executable, "-m", "benchmarks.nginx_files"]
        raise SystemExit(
            subprocess.run([*command, *sys.argv[1:], "--inside"], check=False).returncode
        )
    directives, pair = load_directives(CATALOGUE), _pair()
    print(
        "| project | files | statements | put in place | stand | offered | accepted | lines - | + | strange |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        _run("mount", "-t", "tmpfs", "intop", name)
        try:
            for project in sorted(p for p in arguments.folder.iterdir() if p.is_dir()):
                root = Root(Path(name) / project.name, pair)
                root.mount()
                try:
                    _place(project, root)
                    print(_row(study(project.name, root, directives, arguments.configurations)))
                finally:
                    root.unmount()
        finally:
            _run("umount", name)


def _row(result: Result) -> str:
    r = result
    words = f" {r.words}" if r.words else ""
    return (
        f"| {r.name} | {r.files} | {r.statements} | {r.mended} | {r.stand} | {r.offered} "
        f"| {r.accepted} of {r.drawn} | {r.removed:.0f} | {r.added:.0f} | {r.strange} |{words}"
    )


if __name__ == "__main__":
    main()
