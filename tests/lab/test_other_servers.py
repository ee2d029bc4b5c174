"""The load balancers of labs where that is not nginx, as texts; at work: test_servers_at_work."""

from dataclasses import replace
from pathlib import Path

import pytest

from intop.domain.balancing import ONLY_PROXIES
from intop.domain.server import SERVERS, ServerName
from intop.lab import texts
from intop.lab.other_servers import RECIPES, Site

SITE = Site(
    folder=Path("/run/intop/lab/t/host-lb"),
    user="www-data",
    group="www-data",
    backends=("198.18.0.31", "198.18.0.32"),
    files=None,
    workers=2,
    backlog=4321,
    open_files=20_000,
)
FILES = replace(SITE, files=Path("/content"))
OTHERS = sorted(RECIPES)


def test_every_server_but_nginx_has_a_recipe() -> None:
    assert set(SERVERS) == {"nginx", *RECIPES}
    for name, recipe in RECIPES.items():
        assert recipe.program in recipe.command(SITE)
        assert recipe.program in SERVERS[name].programs


@pytest.mark.parametrize("name", OTHERS)
def test_it_passes_on_to_the_backends(name: ServerName) -> None:
    text = RECIPES[name].conf(SITE)
    known = [backend for backend in SITE.backends if backend in text]
    assert known == list(SITE.backends[:1] if name == "h2o" else SITE.backends)


@pytest.mark.parametrize("name", [name for name in OTHERS if name not in ONLY_PROXIES])
def test_it_may_serve_files_instead(name: ServerName) -> None:
    text = RECIPES[name].conf(FILES)
    assert "/content" in text
    assert not any(backend in text for backend in SITE.backends)


@pytest.mark.parametrize("name", [name for name in OTHERS if name not in ("caddy", "h2o")])
def test_its_backlog_is_the_labs(name: ServerName) -> None:
    """Those two take what somaxconn allows: the lab's specification refuses a backlog."""
    recipe = RECIPES[name]
    assert "4321" in f"{recipe.conf(SITE)} {recipe.command(SITE)}"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("haproxy", "nbthread 2"),
        ("lighttpd", "server.max-worker = 2"),
        ("h2o", "num-threads: 2"),
        ("caddy", "GOMAXPROCS=2"),
    ],
)
def test_it_has_as_many_workers_as_the_lab_says(name: ServerName, line: str) -> None:
    recipe = RECIPES[name]
    assert line in f"{recipe.conf(SITE)} {' '.join(recipe.command(SITE))}"


def test_its_log_and_files_are_in_its_folder() -> None:
    for name, recipe in RECIPES.items():
        start = texts.foreground_start(name, SERVERS[name].programs, recipe.command(SITE))
        assert f"{SITE.folder}/server.conf" in start.command
        script = texts.restart_script(start, SITE.folder)
        assert '>>"$folder/server.log"' in script
        assert f"case $name in {' | '.join(SERVERS[name].programs)}) ;; *) continue" in script
