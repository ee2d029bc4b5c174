"""A real nginx reads made-up files, and intop reads them as nginx does.

Where intop is sure, it is right; where nginx accepts files, it still does after an edit.
"""

import os
import random
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from builders.nginx_files import RealNginx, catalogue, complaint
from builders.nginx_made_up import LISTENS, UNKNOWN, MadeUp, configuration, statements
from intop.domain.nginx import quantity
from intop.domain.nginx.conf import Conf, parse_shown
from intop.domain.nginx.edits import changed
from intop.domain.nginx.offer import offer
from intop.domain.nginx.permitted import BY_NAME, PREFIX
from intop.domain.nginx.probe import probed
from intop.domain.nginx.standing import current, is_without_effect, listening, standing
from intop.domain.nginx.syntax import Source, Statement, parse
from intop.errors import NginxFileError
from intop.lab.servers import self_signed
from kit.namespace_host import wait_until

ALL_NAMES = {PREFIX + name for name in BY_NAME}
TEMPORARY = "".join(
    f"{kind}_temp_path body/{kind};\n"
    for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
)
SYNTAX = re.compile(r'\[emerg\] [0-9#:]+ (unexpected ["e]|too long parameter)')
"""What nginx says of a file that is none; of others it says that it does not know them."""


@pytest.fixture(scope="module")
def pair() -> str:
    """A key and a certificate that nobody trusts."""
    return self_signed(2048)


@pytest.fixture(scope="module")
def namespace() -> Iterator[str]:
    """A network namespace, since nginx -t opens all sockets."""
    name = f"intop-nginx-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


@pytest.fixture
def nginx(tmp_path: Path, pair: str, namespace: str) -> RealNginx:
    return RealNginx(tmp_path, pair, namespace)


# Words ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(4))
def test_250_texts_are_the_words_that_nginx_sees(nginx: RealNginx, part: int) -> None:
    accepted = refused = 0
    for seed in range(part * 250, part * 250 + 250):
        text = statements(random.Random(seed))
        # Stated twice, nginx warns of each word after the first one of a statement.
        whole = (
            f"events {{}}\nhttp {{ types_hash_bucket_size 8192;\ntypes {{\n{text}\n{text}\n}} }}"
        )
        nginx.write({"nginx.conf": whole})
        ended = nginx.run("-t")
        source = read(whole)
        if ended.returncode == 0:
            accepted += 1
            assert not isinstance(source, NginxFileError), (seed, text, source)
            assert warnings_of(source) == warned(ended.stderr), (seed, text)
        elif SYNTAX.search(ended.stderr):
            refused += 1
            is_block_of_words = 'unexpected "{"' in ended.stderr and has_block_of_words(source)
            assert isinstance(source, NginxFileError) or is_block_of_words, (seed, text)
    assert accepted >= 50
    assert refused >= 50


def read(text: str) -> Source | NginxFileError:
    try:
        return parse(text, "nginx.conf")
    except NginxFileError as error:
        return error


def types_of(source: Source) -> tuple[Statement, ...]:
    _, http = source.statements
    return (http.body or ())[1].body or ()


def has_block_of_words(source: Source | NginxFileError) -> bool:
    """Whether a block stands where nginx takes none: only its place is wrong."""
    return not isinstance(source, NginxFileError) and any(
        statement.body is not None for statement in types_of(source)
    )


def warnings_of(source: Source) -> list[str]:
    """What nginx has to say of names that stand in several types, or twice in one."""
    types: dict[str, str] = {}
    lines = []
    for statement in types_of(source):
        for argument in statement.arguments:
            name = re.sub("[A-Z]", lambda letter: letter[0].lower(), argument)
            if name in types:
                lines.append(
                    f'duplicate extension "{name}", content type: "{statement.name}", '
                    f'previous content type: "{types[name]}"'
                )
            types[name] = statement.name
    return lines


def warned(stderr: str) -> list[str]:
    return re.findall(r"\[warn\] [0-9#:]+ (.*?) in /[^\n]*:[0-9]+\n", stderr, re.DOTALL)


# Numbers ----------------------------------------------------------------------------------------

LOG = "error_log stderr;\nevents {{}}\nhttp {{ {} }}\n"


def differing(nginx: RealNginx, option: str, texts: Sequence[str], unit: str) -> list[object]:
    """The texts that nginx takes as another number than intop.

    nginx refuses a log that is buffered in two ways.
    """
    wrong: list[object] = []
    for text in texts:
        size = "" if option == "buffer" else "buffer=1k "
        log = f'access_log a.log combined {size}"{option}={text}";'
        nginx.write({"nginx.conf": LOG.format(log)})
        number = quantity.read(text, unit)
        if nginx.run("-t").returncode == 0 and number is not None:
            written = quantity.written(str(number), unit)
            again = f"access_log a.log combined {size}{option}={written};"
            nginx.write({"nginx.conf": LOG.format(log + again)})
            if nginx.run("-t").returncode != 0:
                wrong.append((text, number))
    return wrong


def test_times_are_those_of_nginx(nginx: RealNginx) -> None:
    rng = random.Random(1)
    units = ("", "ms", "s", "m", "h", "d", "w", " ", "  ", "S")
    texts = [
        "".join(
            rng.choice(("1", "2", "10", "007", "90", "1500")) + rng.choice(units)
            for _ in range(rng.choice((1, 1, 2, 2, 3)))
        )
        for _ in range(200)
    ]
    assert differing(nginx, "flush", texts, "ms") == []
    assert sum(quantity.read(text, "ms") is not None for text in texts) >= 100


def test_sizes_are_those_of_nginx(nginx: RealNginx) -> None:
    units = ("", "k", "K", "m", "M", "g", "kb", "b", " ")
    texts = [f"{n}{unit}" for n in ("1", "2", "0070", "1500", "8192") for unit in units]
    assert differing(nginx, "buffer", texts, "bytes") == []
    assert sum(quantity.read(text, "bytes") is not None for text in texts) >= 25


# Whole configurations ---------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(4))
def test_100_configurations_are_what_nginx_reads_before_and_after_an_edit(
    nginx: RealNginx, part: int
) -> None:
    accepted = 0
    for seed in range(part * 100, part * 100 + 100):
        rng = random.Random(seed)
        made = configuration(rng)
        anew(nginx, made)
        ended = nginx.run("-T")
        if ended.returncode == 0:
            accepted += 1
            before = parse_shown(ended.stdout)
            check_reading(nginx, before, made, seed)
            check_edit(nginx, before, rng, seed)
    assert accepted >= 60


def anew(nginx: RealNginx, made: MadeUp) -> None:
    for path in nginx.folder.rglob("*.conf"):
        path.unlink()
    nginx.write({**made.texts, "conf.d/temporary.conf": TEMPORARY})


def check_reading(nginx: RealNginx, conf: Conf, made: MadeUp, seed: int) -> None:
    """The files are whole, each value is what its author meant, and setting it changes nothing."""
    for path, source in conf.sources.items():
        assert Path(path).read_bytes() == source.text.encode(errors="surrogateescape"), seed
    values = current(catalogue(), conf, nginx.facts)
    assert made.values == {
        key: UNKNOWN if values[key] is None else values[key] for key in made.values
    }, seed
    single = {key: v for key, v in values.items() if v is not None and is_single(conf, key)}
    assert changed(catalogue(), conf, single, nginx.facts).texts == {}, seed


def is_single(conf: Conf, key: str) -> bool:
    """Whether a directive stands in one place at most, and by itself."""
    directive = catalogue().by_key[key]
    places = standing(conf, directive)
    has_family = key in catalogue().related([f"{PREFIX}http.proxy_buffer_size"])
    is_elsewhere = directive.level in ("listen", "upstream") or places.inner or has_family
    return not (is_elsewhere or directive.companion) and len(places.own) < 2


def check_edit(nginx: RealNginx, before: Conf, rng: random.Random, seed: int) -> None:
    """Nginx takes the files with drawn values, which can be read back; the rest is as it was."""
    offered = offer(
        catalogue(), probed(catalogue(), before, nginx.facts), "high", by_name=ALL_NAMES
    ).space
    keys = [parameter.key for parameter in offered.parameters]
    space = offered.restricted(rng.sample(keys, rng.choice((1, 3, len(keys)))))
    genes = np.random.default_rng(seed).random((1, len(space.columns)))
    (wanted,) = (c.values for c in space.configurations(space.decode(genes)))
    edited = changed(catalogue(), before, wanted, nginx.facts).texts
    nginx.write(edited)
    ended = nginx.run("-T")
    assert ended.returncode == 0, (seed, wanted, edited, complaint(ended.stderr))
    after = parse_shown(ended.stdout)
    expected = {path: edited.get(path, s.text) for path, s in before.sources.items()}
    assert {path: source.text for path, source in after.sources.items()} == expected, seed
    held = current(catalogue(), after, nginx.facts)
    assert {
        key: (value, held[key])
        for key, value in wanted.items()
        if held[key] != value and not is_without_effect(catalogue(), key, held)
    } == {}, (seed, edited)
    assert changed(catalogue(), after, wanted, nginx.facts).texts == {}, (seed, edited)
    names = {catalogue().by_key[key].name for key in catalogue().related(wanted)}
    for path in edited:
        old, new = before.sources[path], after.sources[path]
        assert without(old, names) == without(new, names), (seed, wanted)


def without(source: Source, names: set[str]) -> str:
    """A text without the statements of these names, and the header that 1.1 comes with; no blanks.

    The comments within such a statement may go with it.
    """
    text = source.text
    todo = list(source.statements)
    spans = []
    while todo:
        statement = todo.pop()
        if statement.name in names or statement.arguments == ("Connection", ""):
            spans.append((statement.start, statement.end))
        todo += statement.body or ()
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + text[end:]
    return re.sub(r"[ \t\r\n]", "", text)


# Addresses --------------------------------------------------------------------------------------


def test_the_addresses_that_nginx_listens_on_have_the_backlog_that_they_are_given(
    nginx: RealNginx,
) -> None:
    rng = random.Random(5)
    checked = 0
    for texts in islice(drawn_listens(rng), 30):
        servers = "".join(f"server {{ listen {text}; ROOM }}\n" for text in texts)
        servers = servers.replace("ROOM", "ssl_certificate pair.pem;ssl_certificate_key pair.pem;")
        main = "daemon off; master_process off; pid nginx.pid;\nevents {}\n"
        nginx.write({"nginx.conf": f"{main}http {{ {TEMPORARY}access_log off;\n{servers}}}\n"})
        if nginx.run("-t").returncode == 0:
            before = nginx.shown()
            nginx.write(
                changed(catalogue(), before, {f"{PREFIX}listen.backlog": "77"}, nginx.facts).texts
            )
            after = nginx.shown()
            assert listening(before).keys() == listening(after).keys()
            assert each_port(listening(after)) <= backlogs(nginx, 77), texts
            checked += bool(listening(after))
    assert checked >= 15


def drawn_listens(rng: random.Random) -> Iterator[list[str]]:
    while True:
        some = rng.sample(LISTENS, rng.randrange(1, 4))
        yield [text for texts in some for text in texts]


def each_port(addresses: Mapping[str, object]) -> set[str]:
    """An address for each port of a range, as `ss` writes it."""
    result = set()
    for name in addresses:
        host, _, ports = name.rpartition(":")
        first, _, last = ports.partition("-")
        host = {"*": "0.0.0.0", "localhost": "127.0.0.1"}.get(host, host)
        result |= {f"{host}:{port}" for port in range(int(first), int(last or first) + 1)}
    return result


def backlogs(nginx: RealNginx, size: int) -> set[str]:
    """The addresses that nginx listens on with this backlog, once it is up."""
    words = [*nginx.inside, "nginx", "-p", str(nginx.folder), "-e", "stderr", "-c", "nginx.conf"]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as running:
        try:
            wait_until(lambda: sockets(nginx), "nginx listens")
            return {local for backlog, local in sockets(nginx) if backlog == size}
        finally:
            # Without a master, a SIGTERM that comes just before nginx waits for events is noted
            # only at the next event, and there is none.
            running.kill()


def sockets(nginx: RealNginx) -> list[tuple[int, str]]:
    shown = subprocess.run(
        [*nginx.inside, "ss", "-ltnH"], capture_output=True, text=True, check=True
    ).stdout
    return [(int(line.split()[2]), line.split()[3]) for line in shown.splitlines()]
