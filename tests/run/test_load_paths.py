"""Which paths the doctor asks for, and what it says of their answers."""

from dataclasses import replace

from intop.domain.fetched import Fetched
from intop.domain.workload import Workload
from intop.run.load_paths import paths_of, problems, warnings
from samples import cluster

SLT = Workload(
    name="slt", rate_rps=10, connections=1, threads=1, duration_s=1, warmup_s=0, timeout_s=1
)
DLT = replace(SLT, name="dlt")
PLACE = cluster(url="http://lb:81", static_paths=("/a", "/b"), dynamic_path="/dynamic")


def fetched(path: str, status: int = 200, length: int = 9, problem: str = "") -> Fetched:
    return Fetched(path=path, status=status, bytes=length, check=0, seconds=0.001, problem=problem)


def test_the_paths_are_those_of_all_workloads_each_once() -> None:
    assert ("/a", "/b", "/dynamic?r=1") == paths_of([SLT, DLT, SLT], PLACE)
    assert ("/dynamic?r=1",) == paths_of([DLT], PLACE)
    assert ("/large",) == paths_of([replace(SLT, paths=("/large",))], PLACE)


def test_a_page_is_asked_for_with_a_number_as_its_load_does() -> None:
    other = replace(PLACE, dynamic_path="/page?id=7")
    assert ("/page?id=7&r=1",) == paths_of([DLT], other)


def test_good_answers_are_no_problem() -> None:
    assert [] == problems(PLACE, [fetched("/a"), fetched("/b", 206)])
    assert [] == warnings(PLACE, [fetched("/a"), fetched("/b", 404, problem="status")])


def test_a_problem_names_paths_answer_and_next_step() -> None:
    (line,) = problems(PLACE, [fetched("/a"), fetched("/b", 404, problem="status")])
    assert (
        "lg: /b: answers 404: correct the path in the study, or what the server has there. "
        "By hand, on that host: curl -i http://lb:81/b"
    ) == line


def test_what_is_wrong_alike_is_one_line_and_what_is_not_has_its_own() -> None:
    many = [fetched(f"/{n}", 0, 0, "refused") for n in range(6)]
    refused, empty, bad = problems(
        PLACE, [*many, fetched("/e", 200, 0), fetched("/d?r=1", 502, problem="status")]
    )
    assert refused.startswith("lg: /0, /1, /2, /3 and 2 more: the connection is refused: see that")
    assert empty.startswith("lg: /e: answers 200 with an empty body: correct the path")
    assert bad.startswith("lg: /d?r=1: answers 502: look at nginx's error log and at the backends")
    # For a shell, a question mark is more than itself.
    assert bad.endswith("curl -i 'http://lb:81/d?r=1'")


def test_redirects_are_a_warning() -> None:
    (line,) = warnings(PLACE, [fetched("/a", 301), fetched("/b", 302)])
    assert line.startswith("lg: /a, /b: answers with a redirect, and the load doesn't follow it")
