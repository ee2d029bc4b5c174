"""Real nginx.conf files: read, changed as little as possible, and still accepted by nginx.

    python -m benchmarks.nginx_files FOLDER [--configurations 10] [--markdown]

Each folder in FOLDER is what one project has as /etc/nginx; its nginx.conf is the first file, or
one that only has servers, which is then included in a bare one. None of these files is in this
repository.

A project's files name hosts, certificates, users and modules that this machine has not. So nginx is
asked in a private root (an overlay over this machine's, in a mount namespace that ends with the
script) into which is put what it misses. A directive that this nginx does not know is blanked out.
Then the script draws configurations of all that intop offers there, and one value of each directive
alone. It says how many nginx accepts, how many lines a diff takes away and adds, how many of these
are not ours, and in how many cases a second edit would change something again. Needs root.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path

import numpy as np

from intop.config.directives import load_directives
from intop.domain.nginx.conf import Conf, parse_shown
from intop.domain.nginx.directive import NginxFacts
from intop.domain.nginx.edits import changed
from intop.domain.nginx.offer import offer
from intop.domain.nginx.permitted import BY_NAME, PREFIX
from intop.domain.nginx.standing import Directives, standing
from intop.domain.nginx.syntax import Statement, parse
from intop.domain.space import Space
from intop.lab.certificate import self_signed

CATALOGUE = Path(__file__).parents[1] / "configs" / "nginx.toml"
MOST_MENDED = 200
MOUNTED = ("dev", "proc")
"""Of this machine, as they are: nothing is written there."""
BARE = "events {}\nhttp {\n    include /etc/nginx/project.conf;\n}\n"
COMPANIONS = {"proxy_set_header"}


@dataclass
class Root:
    """A root of its own: `upper` has what differs from this machine's."""

    folder: Path
    pair: str
    mended: list[str] = field(default_factory=list)
    stubs: set[Path] = field(default_factory=set)

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
        for name in MOUNTED:
            _run("mount", "--bind", f"/{name}", str(self.merged / name))

    def unmount(self) -> None:
        for name in MOUNTED:
            _run("umount", str(self.merged / name))
        _run("umount", str(self.merged))

    def path(self, path: str) -> Path:
        return self.merged / path.lstrip("/")

    def write(self, path: str, text: str, mode: str = "w") -> None:
        if path.startswith(tuple(f"/{name}/" for name in MOUNTED)):
            raise SystemExit(f"{path} belongs to this machine")
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
            words = _emerg(ended.stderr)
            if not self._mend(words):
                return words.strip()
        return f"too much is missing: {words.strip()[-200:]}"

    def _mend(self, words: str) -> bool:
        made = (
            self._mend_host(words)
            or self._mend_user(words)
            or self._mend_certificate(words)
            or self._mend_file(words)
            or self._blank(words)
            or self._blank_listen(words)
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
            r'(?:SSL_CTX_load_verify_locations|BIO_new_file|PEM_read_bio_DHparams)\("([^"]+)"',
            words,
        )
        if found is None or self.path(found[1]) in self.stubs:
            return ""
        self.stubs.add(self.path(found[1]))
        if "dh" in Path(found[1]).name:
            made = subprocess.run(
                ["openssl", "dhparam", "-dsaparam", "2048"],
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
            self.path(path).mkdir(parents=True, exist_ok=True)
        else:
            self.write(path, "")
        return "file"

    def _blank(self, words: str) -> str:
        """Blank out a statement that this nginx does not know, its line ends left in place."""
        found = re.search(r" in (/[^ ]+):([0-9]+)$", words.strip())
        is_known = re.search(
            r"unknown (directive|log format|\")|invalid (parameter|value)|dlopen\(\)"
            r"|is not allowed|unsupported on",
            words,
        )
        if found is None or is_known is None:
            return ""
        path = self.path(found[1])
        text = path.read_text(errors="surrogateescape")
        statement = _statement_at(parse(text, found[1]).statements, int(found[2]), text)
        if statement is None:
            return ""
        word = re.search(r'invalid parameter "([^"]+)"', words)
        spans = [(w.start, w.end) for w in statement.words if word and w.value == word[1]]
        self._blank_out(found[1], text, spans or [(statement.start, statement.end)])
        return "word" if spans else "statement"

    def _blank_listen(self, words: str) -> str:
        """Blank out a `listen` at an address that this machine can't have."""
        found = re.search(r"bind\(\) to (\S+) failed", words)
        if found is None:
            return ""
        for path in self.path("/etc/nginx").rglob("*.conf"):
            text = path.read_text(errors="surrogateescape")
            pattern = rf"listen\s+{re.escape(found[1])}[^;]*;"
            if spans := [m.span() for m in re.finditer(pattern, text)]:
                self._blank_out(str(path.relative_to(self.merged)), text, spans)
                return "statement"
        return ""

    def _blank_out(self, path: str, text: str, spans: list[tuple[int, int]]) -> None:
        for start, end in spans:
            text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
        self.write(path, text)


def _statement_at(statements: tuple[Statement, ...], line: int, text: str) -> Statement | None:
    """The innermost statement that nginx's line, the last of its head, belongs to."""
    for statement in statements:
        head_end = statement.inner or statement.end
        last = text.count("\n", 0, head_end) + 1
        if statement.line <= line <= last:
            return statement
        found = _statement_at(statement.body or (), line, text)
        if found is not None:
            return found
    return None


@dataclass
class Tally:
    """What came of configurations of one project: lines are sums over all of them."""

    drawn: int = 0
    accepted: int = 0
    removed: int = 0
    added: int = 0
    strange: int = 0
    again: int = 0
    words: str = ""

    @property
    def lines(self) -> str:
        """Lines less and more, a configuration."""
        return f"{self.removed / self.drawn:.1f} / {self.added / self.drawn:.1f}"


@dataclass(frozen=True)
class Studied:
    """One project: its root, what nginx reads there, and the tallies so far."""

    root: Root
    directives: Directives
    shown: Conf
    facts: NginxFacts

    def run(self, tally: Tally, values: Mapping[str, str]) -> None:
        """One configuration: edit, ask nginx, compare, edit again, and put all back."""
        result = changed(self.directives, self.shown, values, self.facts)
        for path, text in result.texts.items():
            self.root.write(path, text)
        ended = self.root.nginx("-T")
        tally.drawn += 1
        if ended.returncode == 0:
            tally.accepted += 1
            after = parse_shown(ended.stdout)
            tally.again += bool(changed(self.directives, after, values, self.facts).texts)
        else:
            tally.words = tally.words or _emerg(ended.stderr)
        gone, come, others = _diff(self.shown, result.texts, self.directives)
        tally.removed += gone
        tally.added += come
        tally.strange += others
        for path in result.texts:
            self.root.write(path, self.shown.sources[path].text)


def study(name: str, root: Root, directives: Directives, count: int) -> str:
    """The row of one project, whose files are in place."""
    if words := root.mend():
        return f"| {name} | nginx refuses it as it is: {words[:300]} |"
    shown = parse_shown(root.nginx("-T").stdout)
    for path, source in shown.sources.items():
        with root.path(path).open(newline="", errors="surrogateescape") as file:
            if file.read() != source.text:
                raise SystemExit(f"{name}: {path} is not as nginx -T shows it")
    facts = _facts(root)
    names = {PREFIX + key for key in BY_NAME}
    space = offer(directives, shown, facts, "high", by_name=names).space
    project, whole, single = Studied(root, directives, shown, facts), Tally(), Tally()
    rng = np.random.default_rng(1)
    for configuration in _drawn(space, count, rng):
        project.run(whole, configuration)
    for parameter in space.parameters:
        project.run(single, _drawn(space.restricted([parameter.key]), 1, rng)[0])
    stand = sum(bool((s := standing(shown, d)).own or s.inner) for d in directives.by_key.values())
    cells = [name, len(shown.sources), len(shown.places), len(root.mended), stand]
    cells += [f"{whole.accepted} of {whole.drawn}", whole.lines]
    cells += [f"{single.accepted} of {single.drawn}", single.lines]
    cells += [whole.strange + single.strange, whole.again + single.again]
    return f"| {' | '.join(map(str, cells))} | {whole.words or single.words}".strip()


def _drawn(space: Space, count: int, rng: np.random.Generator) -> list[Mapping[str, str]]:
    values = space.decode(rng.random((count, len(space.columns))))
    return [configuration.values for configuration in space.configurations(values)]


def _emerg(stderr: str) -> str:
    return next((line for line in stderr.splitlines() if "[emerg]" in line), stderr).strip()


def _diff(conf: Conf, texts: Mapping[str, str], directives: Directives) -> tuple[int, int, int]:
    """Lines that a diff takes away and adds, and those of them that are not ours."""
    ours = {d.name for d in directives.by_key.values()} | COMPANIONS
    pattern = re.compile(rf"\b({'|'.join(sorted(ours))})\b")
    gone = come = strange = 0
    for path, text in texts.items():
        old = conf.sources[path].text.splitlines()
        diff = list(unified_diff(old, text.splitlines(), lineterm="", n=0))[2:]
        came = [line[1:] for line in diff if line.startswith("+")]
        went = [line[1:] for line in diff if line.startswith("-")]
        gone, come = gone + len(went), come + len(came)
        # Where the same line goes and comes, diff has only taken another one for it.
        came, went = _without(came, went), _without(went, came)
        strange += sum(pattern.search(line) is None for line in came)
        # In a block that is one line, ours comes between what stood there.
        strange += sum(
            pattern.search(line) is None and not any(_is_part(line, new) for new in came)
            for line in went
        )
    return gone, come, strange


def _without(lines: Sequence[str], others: Sequence[str]) -> list[str]:
    return list((Counter(lines) - Counter(others)).elements())


def _is_part(line: str, longer: str) -> bool:
    """Whether a line has only got something between its characters."""
    rest = iter(longer)
    return all(character in rest for character in line)


def _facts(root: Root) -> NginxFacts:
    return NginxFacts.of(
        root.nginx("-V").stderr,
        kernel=platform.release(),
        cpus=os.cpu_count() or 1,
        page_bytes=os.sysconf("SC_PAGESIZE"),
        nofile=1024,
    )


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
    directives, pair = load_directives(CATALOGUE), self_signed(2048)
    head = ["project", "files", "statements", "put in place", "stand", "all: accepted", "lines"]
    head += ["one: accepted", "lines", "not ours", "again"]
    print(f"| {' | '.join(head)} |\n|---{'|---:' * (len(head) - 1)}|")
    with tempfile.TemporaryDirectory() as name:
        _run("mount", "-t", "tmpfs", "intop", name)
        try:
            for project in sorted(p for p in arguments.folder.iterdir() if p.is_dir()):
                root = Root(Path(name) / project.name, pair)
                root.mount()
                try:
                    _place(project, root)
                    print(study(project.name, root, directives, arguments.configurations))
                finally:
                    root.unmount()
        finally:
            _run("umount", name)


if __name__ == "__main__":
    main()
