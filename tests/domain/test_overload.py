import pytest

from intop.domain.overload import default_before, is_doubted
from intop.domain.trial import Status


@pytest.mark.parametrize(
    ("index", "defaults", "expected"),
    [
        (0, {0: "overloaded"}, True),
        (0, {0: "ok"}, False),
        (4, {0: "ok", 4: "overloaded"}, False),
        (8, {0: "ok", 4: "overloaded", 8: "overloaded"}, True),
        (8, {0: "overloaded", 4: "ok", 8: "overloaded"}, False),
        # What stands after it is no matter, such as when it was put off.
        (4, {0: "ok", 4: "overloaded", 8: "overloaded"}, False),
        (4, {4: "overloaded", 8: "ok"}, True),
        (2, {0: "overloaded"}, False),
    ],
)
def test_two_overloaded_defaults_in_a_row_are_too_many(
    index: int, defaults: dict[int, Status], expected: bool
) -> None:
    assert is_doubted(index, defaults) == expected


def test_the_default_before_is_the_nearest_one() -> None:
    assert default_before(8, {12: "ok", 0: "ok", 8: "ok", 4: "ok"}) == 4
    assert default_before(0, {0: "ok", 4: "ok"}) is None
