from dataclasses import replace

import pytest

from intop.domain.fetched import PROBLEMS, SENTENCES, UNASKED, Fetched

ANSWER = Fetched(path="/a", status=200, bytes=7, check=1, seconds=0.001)


@pytest.mark.parametrize("status", [200, 206, 301, 304])
def test_an_answer_with_a_body_is_fit_for_a_load(status: int) -> None:
    assert replace(ANSWER, status=status).complaint == ""


def test_an_empty_body_is_not() -> None:
    assert replace(ANSWER, status=204, bytes=0).complaint == "answers 204 with an empty body"


@pytest.mark.parametrize("status", [400, 404, 502])
def test_neither_is_a_status_of_an_error(status: int) -> None:
    for problem in ("status", ""):
        result = replace(ANSWER, status=status, problem=problem)
        assert result.complaint == f"answers {status}"


@pytest.mark.parametrize("problem", sorted(SENTENCES))
def test_each_problem_without_an_answer_has_its_sentence(problem: str) -> None:
    result = replace(ANSWER, status=0, bytes=0, problem=problem)
    assert SENTENCES[problem] == result.complaint
    assert problem in PROBLEMS
    assert not result.is_redirect


def test_a_redirect_is_known_by_its_status() -> None:
    assert [replace(ANSWER, status=status).is_redirect for status in (301, 200, 404)] == [
        True,
        False,
        False,
    ]
    assert UNASKED in PROBLEMS
