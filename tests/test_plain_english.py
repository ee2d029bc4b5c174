"""The rules of plain English find what they should, and nothing else."""

from pathlib import Path

import pytest

from scripts.plain_english import IN_PAGES, RULES, broken, docstrings, prose, sentences

ALL = RULES | IN_PAGES


@pytest.mark.parametrize(
    "sentence",
    [
        "Of fewer than 30 configurations nothing is frozen.",
        "Taken is the first set of keys that the winner does not change itself.",
        "What is measured next hangs on the stored rounds alone.",
        "It is that of a trial.",
        "How long it takes is told before.",
        "Then it measures anew.",
        "It gives the hosts back.",
        "Laid next to each other, they differ.",
    ],
)
def test_a_crooked_sentence_is_found(sentence: str) -> None:
    assert list(broken(sentence, ALL))


@pytest.mark.parametrize(
    "sentence",
    [
        "intop freezes parameters only after 30 configurations.",
        "Of course it stops.",
        "What you need",
        "The host restores itself.",
        "People want to be told the reason.",
    ],
)
def test_a_plain_sentence_is_not(sentence: str) -> None:
    rules = [rule for rule in broken(sentence, ALL) if rule != "is told"]
    assert rules == []


def test_a_page_is_read_without_code_tables_and_links(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Of heads\n\nSee [it](x.md). Then `of code`.\n\n| of | cells |\n\n```\nanew\n```\n"
    )
    assert list(sentences(prose(page))) == ["See it.", "Then CODE."]


def test_the_texts_below_fields_count_too(tmp_path: Path) -> None:
    source = tmp_path / "a.py"
    source.write_text('"""A module. More of it."""\n\nX = 1\n"""Of a field."""\n')
    assert list(docstrings(source)) == [(1, "A module."), (4, "Of a field.")]
