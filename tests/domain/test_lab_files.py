"""Files of a lab by paths that somebody has written."""

import pytest

from intop.domain.lab_files import check_files, file_name


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
