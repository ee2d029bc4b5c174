"""Work that is spread over forks."""

import os
import signal

import pytest

from intop.report.document.forks import meanwhile, spread

HERE = os.getpid()


def test_each_piece_is_done_once_and_they_come_in_order() -> None:
    assert [n * n for n in range(11)] == spread(lambda n: n * n, 11)
    assert [] == spread(lambda n: n, 0)


def test_what_a_fork_fails_to_do_is_done_here() -> None:
    def only_here(n: int) -> int:
        if os.getpid() != HERE:
            os.kill(os.getpid(), signal.SIGKILL)
        return n

    assert list(range(9)) == spread(only_here, 9)


def test_an_error_is_raised_here() -> None:
    def refuse(n: int) -> int:
        if n == 7:
            raise ValueError("seven")
        return n

    with pytest.raises(ValueError, match="seven"):
        spread(refuse, 9)


def test_two_pieces_of_work_are_done_by_two_processes() -> None:
    here: list[int] = []
    assert meanwhile(os.getpid, lambda: here.append(os.getpid())) not in (HERE, None)
    assert [HERE] == here


def test_what_the_other_process_fails_to_do_is_done_here_after_all() -> None:
    def only_here() -> int:
        if os.getpid() != HERE:
            os.kill(os.getpid(), signal.SIGKILL)
        return 7

    assert 7 == meanwhile(only_here, lambda: None)

    def refuse() -> int:
        raise ValueError("seven")

    with pytest.raises(ValueError, match="seven"):
        meanwhile(refuse, lambda: None)
