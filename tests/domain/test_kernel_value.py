"""What the kernel makes of texts; each was written to a real kernel (6.18) first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.damage import anything
from intop.domain.kernel_value import odd_numbers, reading

KEY, RMEM = "net.core.somaxconn", "net.ipv4.tcp_rmem"
NUMBER, VECTOR = ("4096", "65535"), ("1 2 3", "9000 131072 6291456")


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        ("65535", NUMBER, ("taken", "65535")),
        ("65535   # same", NUMBER, ("taken", "65535")),
        ("0xffff", NUMBER, ("taken", "65535")),
        ("0XFFFF", NUMBER, ("taken", "65535")),
        ("010001", NUMBER, ("taken", "4097")),
        ("5000 x", NUMBER, ("taken", "5000")),
        ("010", NUMBER, ("likely", "8")),
        ("99999999999", NUMBER, ("likely", "99999999999")),
        ("-5", NUMBER, ("likely", "-5")),
        ("'65535'", NUMBER, ("refused", "'65535'")),
        ("65535# same", NUMBER, ("refused", "65535# same")),
        ("65535,", NUMBER, ("refused", "65535,")),
        ("+65535", NUMBER, ("refused", "+65535")),
        ("08", NUMBER, ("refused", "08")),
        ("0x", NUMBER, ("refused", "0x")),
        ("0" * 22 + "12", NUMBER, ("refused", "0" * 22 + "12")),
        ("", NUMBER, ("refused", "")),
        ("yes", ("0", "1"), ("refused", "yes")),
        ("0x1000 010000 6291456 # same", VECTOR, ("taken", "4096 4096 6291456")),
        ("9000 131072 # same", VECTOR, ("unknown", "9000 131072 # same")),
        ("9000", VECTOR, ("unknown", "9000")),
        ("4096,131072,6291456", VECTOR, ("refused", "4096,131072,6291456")),
        ("9000 1000 4000", VECTOR, ("likely", "9000 1000 4000")),
        ("reno", ("cubic", "reno"), ("taken", "reno")),
        ("bbr", ("cubic", "reno"), ("unknown", "bbr")),
        ("65535", (), ("unknown", "65535")),
        ("4", ("1", "1 2"), ("unknown", "4")),
    ],
)
def test_a_text_is_taken_refused_or_not_known(
    text: str, known: tuple[str, ...], expected: tuple[str, str]
) -> None:
    result = reading(KEY, text, known)
    assert (result.outcome, result.value) == expected


def test_what_the_kernel_may_round_or_refuse_is_not_sure() -> None:
    """Some keys have no sign: to them -0 is no number."""
    rounded = "net.ipv4.tcp_invalid_ratelimit"
    assert reading(rounded, "255", ("500", "0")).outcome == "likely"
    assert reading(rounded, "500 # same", ("500", "0")).outcome == "taken"
    assert reading("net.ipv4.tcp_ecn", "-0", ("0", "2")).outcome == "likely"


def test_a_bit_mask_is_no_number() -> None:
    assert reading("net.core.rps_default_mask", "ff", ("0", "3")).outcome == "unknown"


@given(anything, st.sampled_from([NUMBER, VECTOR, ("reno",), ()]))
def test_any_text_has_a_reading(text: str, known: tuple[str, ...]) -> None:
    assert reading(RMEM, text, known).outcome in ("taken", "likely", "refused", "unknown")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("010", {"010": 8}),
        ("4096 0100 -017", {"0100": 64, "-017": -15}),
        ("0 00 01 0x10 10 fq_codel 08", {}),
    ],
)
def test_octal_numbers_are_not_what_people_read(text: str, expected: dict[str, int]) -> None:
    assert odd_numbers(text) == expected
