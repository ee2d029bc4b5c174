"""A real nginx has the last word: it accepts whatever the space can decode."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from builders.nginx_files import TEXTS, RealNginx, catalogue
from intop.domain.nginx.conf import Conf
from intop.domain.nginx.edits import changed
from intop.domain.nginx.offer import offer
from intop.domain.nginx.permitted import BY_NAME, PREFIX
from intop.domain.nginx.probe import probed
from intop.domain.nginx.standing import Directives, current, is_without_effect
from intop.domain.space import Space
from intop.lab.servers import self_signed

ALL_NAMES = {PREFIX + name for name in BY_NAME}


@pytest.fixture(scope="module")
def pair() -> str:
    """A key and a certificate that nobody trusts."""
    return self_signed(2048)


@pytest.fixture
def nginx(tmp_path: Path, pair: str) -> RealNginx:
    """With the files of TEXTS, whose temporary folders are below its own."""
    results = RealNginx(tmp_path, pair)
    temporary = "".join(
        f"{kind}_temp_path body/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    texts = {str(tmp_path / path): text for path, text in TEXTS.items()}
    texts[str(tmp_path / "conf.d" / "temp.conf")] = temporary
    results.write(texts)
    return results


def drawn(of: Space, count: int, seed: int) -> list[Mapping[str, str]]:
    genes = np.random.default_rng(seed).random((count, len(of.columns)))
    return [c.values for c in of.configurations(of.decode(genes))]


def check(nginx: RealNginx, before: Conf, wanted: Mapping[str, str]) -> None:
    """Nginx accepts the files with these values, and then these values are the effective ones."""
    result = changed(catalogue(), before, wanted, nginx.facts)
    nginx.write(result.texts)
    after = nginx.shown()
    held = current(catalogue(), after, nginx.facts)
    assert {
        key: (value, held[key])
        for key, value in wanted.items()
        if held[key] != value and not is_without_effect(catalogue(), key, held)
    } == {}
    assert changed(catalogue(), after, wanted, nginx.facts).texts == {}
    nginx.write({path: source.text for path, source in before.sources.items()})


def whole(nginx: RealNginx, before: Conf) -> Space:
    results = offer(
        catalogue(), probed(catalogue(), before, nginx.facts), "high", by_name=ALL_NAMES
    )
    assert len(results.space.parameters) >= 70, results.refused
    return results.space


def test_what_nginx_shows_is_what_its_files_say(nginx: RealNginx) -> None:
    shown = nginx.shown()
    for path, source in shown.sources.items():
        assert Path(path).read_text() == source.text


def test_some_configurations_of_the_whole_space(nginx: RealNginx) -> None:
    before = nginx.shown()
    for wanted in drawn(whole(nginx, before), 12, seed=1):
        check(nginx, before, wanted)


def test_without_its_constraints_the_space_has_what_nginx_refuses(nginx: RealNginx) -> None:
    before = nginx.shown()
    free = replace(whole(nginx, before), constraints=())
    unbound = Directives(catalogue().by_key)
    for wanted in drawn(free, 12, seed=1):
        nginx.write(changed(unbound, before, wanted, nginx.facts).texts)
        ended = nginx.run("-t")
        if ended.returncode != 0:
            assert "proxy_" in ended.stderr
            return
    pytest.fail("nginx accepts everything: the constraints are not needed")


def test_the_ends_of_all_ranges(nginx: RealNginx) -> None:
    before = nginx.shown()
    space = whole(nginx, before)
    genes = np.array([[0.0] * len(space.columns), [1.0] * len(space.columns)])
    for configuration in space.configurations(space.decode(genes)):
        check(nginx, before, configuration.values)


@pytest.mark.parametrize("key", ["http.proxy_buffer_size", "http.proxy_buffers.size"])
def test_a_part_of_a_family_is_fitted_to_the_rest(nginx: RealNginx, key: str) -> None:
    before = nginx.shown()
    space = whole(nginx, before).restricted([PREFIX + key])
    for wanted in drawn(space, 2, seed=2):
        check(nginx, before, wanted)


@pytest.mark.long
def test_300_configurations_of_the_whole_space(nginx: RealNginx) -> None:
    before = nginx.shown()
    for wanted in drawn(whole(nginx, before), 300, seed=3):
        check(nginx, before, wanted)


@pytest.mark.long
def test_300_configurations_of_parts_of_the_space(nginx: RealNginx) -> None:
    before = nginx.shown()
    space = whole(nginx, before)
    rng = np.random.default_rng(4)
    keys = [p.key for p in space.parameters]
    for number in range(300):
        part = space.restricted(rng.choice(keys, size=int(rng.integers(1, 8)), replace=False))
        for wanted in drawn(part, 1, seed=number):
            check(nginx, before, wanted)
