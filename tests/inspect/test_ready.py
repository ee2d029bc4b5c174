"""A problem keeps a campaign from starting."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from builders.doctored import MACHINE, Answers, cluster
from intop.config.study import Study
from intop.document.progress import LineProgress
from intop.domain.configuration import DEFAULT
from intop.domain.trial import PlannedTrial
from intop.errors import IntopError
from intop.inspect.doctor import check_ready
from intop.run.all_replicas import replicas
from intop.run.campaigns import new
from intop.run.context import Context, Task
from intop.store import Subject, opened

Begin = Callable[..., Task]


@pytest.fixture
def begin(study: Study, tmp_path: Path) -> Iterator[Begin]:
    """A new campaign on one cluster, whose hosts, by name, have other answers."""
    with opened(str(tmp_path / "store.db")) as store:

        def made(message: StringIO, *, force: bool = False, **changes: dict[str, Any]) -> Task:
            own = replace(study, clusters={"x86": (cluster(),)})
            context = Context(
                study=own,
                store=store,
                campaign=new(store, own),
                connect=lambda a: Answers(a, **changes.get(a.name.replace("-", "_"), {})),
                progress=LineProgress(message),
                archs=("x86",),
                workloads=(own.workloads["slt"],),
                force=force,
                check_ready=check_ready,
            )
            subject = Subject(campaign=context.campaign, arch="x86", workload="slt")
            return Task(context=context, subject=subject, workload=own.workloads["slt"])

        yield made


NOT_READY = {"a_lb": {"facts": MACHINE.replace("nginx/1.22.1", "")}, "a_lg": {"clock_s": 5.0}}


def test_a_problem_keeps_a_campaign_from_starting(begin: Begin) -> None:
    """Before a testbed is opened, which would fail the test: it puts files on hosts."""
    with pytest.raises(IntopError) as caught, replicas(begin(StringIO(), **NOT_READY)):
        pytest.fail("a campaign starts")
    message = str(caught.value)
    assert message.count("\n  PROBLEM  a-") == 2
    assert "a-lb: has no nginx on its PATH" in message
    assert "a-lg: its clock is" in message
    assert "intop doctor --arch x86\n" in message
    assert message.endswith("--force")


def test_with_force_it_goes_on_and_says_so(begin: Begin) -> None:
    message = StringIO()
    check_ready(begin(message, force=True, **NOT_READY))
    assert "it goes on by --force" in message.getvalue()
    assert message.getvalue().count("PROBLEM  a-") == 2


def test_warnings_stop_nothing(begin: Begin) -> None:
    message = StringIO()
    lacks = {"has": "can_store\nfree 71582432\nlacks ss\n"}
    check_ready(begin(message, a_b1=lacks))
    assert "x86: 1 warning: intop doctor --arch x86" in message.getvalue()


def test_only_the_paths_of_its_workloads_keep_a_campaign_from_starting(begin: Begin) -> None:
    message = StringIO()
    check_ready(begin(message, a_lg={"answers": {"/d?r=1": (502, 9, "status")}}))
    assert message.getvalue() == ""
    with pytest.raises(IntopError, match=r"(?s)not ready.*a-lg: /a: answers 502: .*--force"):
        check_ready(begin(message, a_lg={"answers": {"/a": (502, 9, "status")}}))


def test_a_campaign_that_has_begun_is_not_asked_again(begin: Begin) -> None:
    task = begin(StringIO(), **NOT_READY)
    planned = PlannedTrial(index=0, role="baseline", configuration=DEFAULT)
    task.store.write_plan(task.subject, "screen", [planned])
    check_ready(task)
    other = replace(task, subject=replace(task.subject, arch="arm"))
    with pytest.raises(KeyError, match="arm"):
        check_ready(other)
