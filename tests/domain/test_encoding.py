"""Values of a configuration as numbers that models see."""

import numpy as np
import pytest

from intop.domain.encoding import Variable, encode

LINEAR = Variable(name="a", key="a", low=10, high=30)
LOG = Variable(name="b[max]", key="b", low=1, high=10_000, scale="log")
SWITCH = Variable(name="c", key="c", choices=("0", "1"))
CHOICE = Variable(name="d", key="d", choices=("cubic", "reno", "bbr"))


def test_a_number_is_its_place_in_the_range_on_its_scale() -> None:
    assert LINEAR.place(np.array([10.0, 20.0, 30.0])).tolist() == [0, 0.5, 1]
    assert pytest.approx(LOG.place(np.array([1.0, 100.0, 10_000.0]))) == [0, 0.5, 1]


def test_what_lies_outside_of_the_range_counts_as_its_end() -> None:
    assert LINEAR.place(np.array([-5.0, 31.0])).tolist() == [0, 1]
    assert LOG.place(np.array([0.0, 1e9])).tolist() == [0, 1]


def test_choices_are_one_feature_each_and_two_of_them_one_together() -> None:
    assert SWITCH.features == ("c",)
    assert CHOICE.features == ("d=cubic", "d=reno", "d=bbr")
    assert SWITCH.encode(np.array([0.0, 1.0])).tolist() == [[0], [1]]
    assert CHOICE.encode(np.array([2.0, 0.0])).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_features_stand_in_the_order_of_the_variables() -> None:
    result = encode((CHOICE, LINEAR, SWITCH), np.array([[1.0, 30.0, 1.0], [0.0, 10.0, 0.0]]))
    assert result.tolist() == [[0, 1, 0, 1, 1], [1, 0, 0, 0, 0]]
    assert encode((), np.empty((4, 0))).shape == (4, 0)


def test_choices_are_told_as_another_variable_has_them() -> None:
    other = Variable(name="d", key="d", choices=("bbr", "cubic", "dctcp"))
    result = CHOICE.in_terms_of(other, np.array([0.0, 1.0, 2.0]), -1.0)
    assert result.tolist() == [1, -1, 0]
    assert LINEAR.in_terms_of(LOG, np.array([12.0, 500.0]), -1.0).tolist() == [12, 500]


def test_a_range_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="a: 3 to 3 is no range"):
        Variable(name="a", key="a", low=3, high=3)
    with pytest.raises(ValueError, match="a: 0 has no place on a logarithmic scale"):
        Variable(name="a", key="a", low=0, high=3, scale="log")
