"""Ctrl-C wherever it comes."""

import threading

import pytest

from intop.command.output import as_interrupt


def interrupted() -> None:
    """What `Condition.__exit__` does when Ctrl-C has come before it had its lock again."""
    try:
        raise KeyboardInterrupt
    finally:
        threading.Lock().release()


def broken() -> None:
    try:
        raise KeyboardInterrupt
    finally:
        raise RuntimeError("a defect")


def test_while_python_takes_a_lock_it_is_one_too() -> None:
    with pytest.raises(KeyboardInterrupt), as_interrupt():
        interrupted()


def test_another_error_stays_what_it_is() -> None:
    with pytest.raises(RuntimeError, match="a defect"), as_interrupt():
        broken()
    with pytest.raises(RuntimeError, match="release unlocked lock"), as_interrupt():
        threading.Lock().release()
