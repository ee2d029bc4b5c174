"""What the lab reads back of itself and of the machine, when somebody else has written it."""

import json
from ipaddress import IPv4Network

from hypothesis import given
from hypothesis import strategies as st

from builders.damage import NUMBERS, PIECES, anything, damaged
from intop.domain.cluster import LabSpec, lab_name_problem
from intop.hosts.answers import lines
from intop.lab.state import Lab, from_json, to_json

LAB = Lab(LabSpec(name="lab"), IPv4Network("198.18.0.0/24"), "")
odd = st.recursive(
    st.none() | st.integers() | st.floats() | st.sampled_from([*NUMBERS, *PIECES]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)


def known(text: str) -> None:
    try:
        result = from_json(text)
    except (ValueError, KeyError, TypeError):
        return
    assert lab_name_problem(result.spec.name) is None
    assert isinstance(result.subnet, IPv4Network)


@given(anything | damaged(to_json(LAB)))
def test_a_labs_state_is_one_or_refused(text: str) -> None:
    known(text)


@given(st.sampled_from(["spec", "subnet", "emulation"]), odd)
def test_each_part_of_it_is_one_or_refused(part: str, value: object) -> None:
    known(json.dumps(json.loads(to_json(LAB)) | {part: value}))


@given(st.sampled_from(["name", "arch", "kind", "link", "machines"]), odd)
def test_each_part_of_its_description_is_one_or_refused(part: str, value: object) -> None:
    state = json.loads(to_json(LAB))
    state["spec"][part] = value
    known(json.dumps(state))


@given(anything)
def test_what_is_a_labs_name_is_one_word_of_no_shells(text: str) -> None:
    if lab_name_problem(text) is None:
        assert [text] == lines(f"{text}\n")
        assert set(text) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
        assert not text.startswith("-")


def test_the_untouched_state_is_read() -> None:
    """Else all that was refused above may have been refused for something else."""
    assert from_json(to_json(LAB)) == LAB
