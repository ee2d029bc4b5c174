"""Which paths the doctor asks for, and what it says of their answers."""

from dataclasses import replace

from builders.trials import cluster
from intop.domain.fetched import Fetched
from intop.domain.workload import Clients, Workload
from intop.run.load_paths import Manner, asked, differing, fixed, problems, warnings

SLT = Workload(
    name="slt",
    kind="slt",
    rate_rps=10,
    connections=1,
    threads=1,
    duration_s=1,
    warmup_s=0,
    timeout_s=1,
)
DLT = replace(SLT, name="dlt", kind="dlt")
URL = "http://lb:81"
PLAIN: Manner = ("1.1", ())
PLACE = cluster(url=URL, static_paths=("/a", "/b"), dynamic_path="/dynamic")


def fetched(path: str, status: int = 200, length: int = 9, problem: str = "") -> Fetched:
    return Fetched(path=path, status=status, bytes=length, check=0, seconds=0.001, problem=problem)


def test_the_paths_are_those_of_all_workloads_each_once() -> None:
    assert asked([SLT, DLT, SLT], PLACE) == {PLAIN: ("/a", "/b", "/dynamic?r=1")}
    assert asked([DLT], PLACE) == {PLAIN: ("/dynamic?r=1",)}
    assert asked([replace(SLT, paths=("/large",))], PLACE) == {PLAIN: ("/large",)}


def test_each_class_of_clients_asks_with_its_headers_and_none_posts() -> None:
    headers = ("Host: a", "Accept: b")
    clients = (
        Clients(name="one", share=0.5, headers=headers),
        Clients(name="two", share=0.3),
        Clients(name="three", share=0.2, method="POST", headers=("Host: c",)),
    )
    both = replace(SLT, clients=clients)
    assert {("1.1", headers): ("/a", "/b"), PLAIN: ("/a", "/b")} == asked([both], PLACE)
    assert asked([replace(SLT, clients=clients[2:])], PLACE) == {}


def test_classes_of_another_http_ask_over_it() -> None:
    clients = (Clients(name="one", share=0.5), Clients(name="two", share=0.5, http="2"))
    both = replace(SLT, clients=clients)
    assert asked([both], PLACE) == {PLAIN: ("/a", "/b"), ("2", ()): ("/a", "/b")}


def test_a_page_is_asked_for_with_a_number_as_its_load_does() -> None:
    other = replace(PLACE, dynamic_path="/page?id=7")
    assert asked([DLT], other) == {PLAIN: ("/page?id=7&r=1",)}


def test_good_answers_are_no_problem() -> None:
    assert problems("lg", URL, [fetched("/a"), fetched("/b", 206)]) == []
    assert warnings("lg", URL, [fetched("/a"), fetched("/b", 404, problem="status")]) == []


def test_a_problem_names_paths_answer_and_next_step() -> None:
    (line,) = problems("lg", URL, [fetched("/a"), fetched("/b", 404, problem="status")])
    assert line == (
        "lg: /b: answers 404: correct the path in the study, or what the server has there. "
        "By hand, on that host: curl -i http://lb:81/b"
    )


def test_what_is_wrong_alike_is_one_line_and_what_is_not_has_its_own() -> None:
    many = [fetched(f"/{n}", 0, 0, "refused") for n in range(6)]
    refused, empty, bad = problems(
        "lg", URL, [*many, fetched("/e", 200, 0), fetched("/d?r=1", 502, problem="status")]
    )
    assert refused.startswith("lg: /0, /1, /2, /3 and 2 more: the connection is refused: see that")
    assert empty.startswith("lg: /e: answers 200 with an empty body: correct the path")
    assert bad.startswith("lg: /d?r=1: answers 502: look at the server's error log and at the")
    # For a shell, a question mark is more than itself.
    assert bad.endswith("curl -i 'http://lb:81/d?r=1'")


def test_what_was_asked_with_headers_can_be_asked_so_by_hand() -> None:
    wrong = replace(fetched("/a", 404), headers=("Host: a b",))
    one, other = problems("lg", URL, [fetched("/a", 404), wrong])
    assert one.endswith(": curl -i http://lb:81/a")
    assert other.endswith(": curl -i -H 'Host: a b' http://lb:81/a")


def test_a_server_without_http2_is_told_how_to_have_it() -> None:
    wrong = [replace(fetched(path, 0, 0, "http2"), http="2") for path in ("/a", "/b")]
    (line,) = problems("lg", URL, wrong)
    assert line == (
        "lg: /a, /b: the server doesn't offer HTTP/2: switch it on there (nginx: listen ... http2; "
        'from 1.25.1 on http2 on), or leave http = "2" out of the study. '
        "By hand, on that host: curl -i --http2-prior-knowledge http://lb:81/a"
    )
    (line,) = problems("lg", "https://lb", wrong)
    assert line.endswith("curl -i --http2 https://lb/a")


def test_redirects_are_a_warning() -> None:
    (line,) = warnings("lg", URL, [fetched("/a", 301), fetched("/b", 302)])
    assert line.startswith("lg: /a, /b: answers with a redirect, and the load doesn't follow it")


def test_static_paths_are_compared_unless_the_status_is_enough() -> None:
    assert fixed([SLT, DLT], PLACE) == {PLAIN: ("/a", "/b")}
    assert fixed([replace(SLT, check="status"), DLT], PLACE) == {}


def test_backends_that_serve_different_files_are_named_with_both_lengths() -> None:
    answers = [fetched("/a"), fetched("/b"), fetched("/a", length=273), fetched("/b")]
    (line,) = differing("lg", URL, answers)
    assert line.startswith("lg: /a: has 9 and 273 bytes by turns, so the backends serve different")
    assert 'check = "status"' in line
    assert differing("lg", URL, [fetched("/a"), fetched("/a"), fetched("/a", 404)]) == []
