"""A command that only asks, and a worker that measures for it on a real lab."""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from intop.store import opened_to_read
from kit.forked import Forked
from kit.postgres import Server
from kit.studies import wait_for

Make = Callable[..., Any]


@pytest.fixture
def asked(make_study: Make, postgres_server: Server) -> tuple[Any, str]:
    """One cluster, whose campaigns are in PostgreSQL and are measured by workers."""
    made = make_study("x86")
    path = made.folder / "intop.toml"
    url = postgres_server.database()
    path.write_text(path.read_text().replace('"small.db"', f'"{url}"\nworkers = true'))
    return made, url


@pytest.mark.long
def test_a_worker_that_is_killed_in_a_trial_leaves_it_to_the_next_one(
    asked: tuple[Any, str],
) -> None:
    """Also, the command itself reaches no host, and the hosts get their own values back."""
    study, url = asked
    before = study.balancer("sysctl net.ipv4 net.core.somaxconn")
    with ExitStack() as stack:
        asking = begun(stack, study, "collect", "--workload", "slt")
        first = begun(stack, study, "worker", "--name", "first")
        wait_for(lambda: len(trials(url)) >= 2, "two trials")
        first.kill()
        # The lease of the first one lasts for half a minute, in which there is nothing to do.
        second = begun(stack, study, "worker", "--name", "second", "--until-idle", "40")
        _, output, code = asking.communicate(300)
        assert code == 0, output
        _, output, code = second.communicate(300)
        assert code == 0, output
    assert before == study.balancer("sysctl net.ipv4 net.core.somaxconn")
    result = trials(url)
    assert len(result) == len(set(result)) > 8
    out, _ = study.run("progress", "--all")
    assert "1 campaign" in out
    assert "second" not in out


def begun(stack: ExitStack, study: Any, *words: str) -> Forked:
    """A command that is at work until the stack is closed."""
    output = Path(tempfile.mkdtemp(dir=study.folder))
    process = Forked([*words], folder=study.folder, output=output)
    stack.callback(process.kill)
    return process


def trials(url: str) -> list[tuple[str, int, int]]:
    """What is stored: stage, place and attempt of each trial."""
    with opened_to_read(url) as store:
        return [
            (t.stage, t.planned.index, t.attempt)
            for campaign in (store.campaigns() if store else [])
            for subject in store.subjects(campaign)
            for t in store.trials(subject)
        ]
