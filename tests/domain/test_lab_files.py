"""Files of a lab by paths that somebody has written."""

import pytest

from intop.domain.cluster import LabSpec
from intop.domain.lab_files import LabWaits, check_files, file_name


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", ".lab"),
        ("/a.css", "a.css.lab"),
        ("/blog", "blog.lab"),
        ("/blog/", "blog/.lab"),
        ("/a%20b/c", "a b/c.lab"),
    ],
)
def test_a_path_and_what_is_below_it_are_files_of_their_own(path: str, expected: str) -> None:
    assert file_name(path) == expected


@pytest.mark.parametrize(
    "path", ["a", "", "/../x", "/a/%2e%2e/x", "/a/./b", "/a?b=1", "/a%00", "/%0a", f"/{'x' * 201}"]
)
def test_what_could_be_no_file_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="files: "):
        file_name(path)


def test_sizes_have_bounds() -> None:
    check_files([("/a", 0.001), ("/b", 999_999)])
    with pytest.raises(ValueError, match="larger than 0 KB"):
        check_files([("/a", 0)])
    with pytest.raises(ValueError, match="at most 1,000,000 KB together, got 1,200,000"):
        check_files([("/a", 600_000), ("/b", 600_000)])


@pytest.mark.parametrize(
    ("waits", "message"),
    [
        ((("/b", ((1, 1),)),), "/b is none of the files: give it a size there"),
        ((("/a", ()),), "/a has no wait"),
        ((("/a", ((1001, 1),)),), "/a waits from 0 to 1,000 ms, got 1001"),
        ((("/a", ((-1, 1),)),), "/a waits from 0 to 1,000 ms, got -1"),
        ((("/a", ((5, 0),)),), "the weight of 5 must be 1 to 1,000, got 0"),
        ((("/a", ((5, 1001),)),), "the weight of 5 must be 1 to 1,000, got 1001"),
    ],
)
def test_waits_that_no_lab_can_have_are_refused(waits: LabWaits, message: str) -> None:
    with pytest.raises(ValueError, match="waits: ") as refusal:
        LabSpec(files=(("/a", 1.0),), waits=waits)
    assert message in str(refusal.value)
