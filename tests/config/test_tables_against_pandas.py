"""Made-up tables: where intop is sure of what a cell means, pandas agrees."""

import csv
import gzip
import io
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intop.config.columns import Meaning, meaning
from intop.config.table import Roles, read_table
from intop.config.table_file import Column, TableFile
from intop.errors import ConfigurationError

TABLES = 1_000

VECTORS = ["4096 131072 6291456", "4096\t87380\t6291456"]
CELLS: dict[str, list[str]] = {
    "numbers": ["0", "1", "-1", "2.5", "1e3", "+7", ".5", "4.", "200", "1000000", "007"],
    "units": ["4kb", "1 MB", "64k", "10s", "250 ms", "5%", "2.4GHz", "3m"],
    "commas": ["0,5", "1,5", "1,200", "12,345.5", "1.234,5", "1,00,000", "-0,25", "0,5 ms"],
    "others": [
        "1 200",
        "1\u00a0200",
        "1'200",
        "1_000",
        "0x10",
        "1.234.567",
        "\u22125",
        "٣",
        "\uff15",
    ],
    "odd": ["12O", "<5", "$5", "5+", "1/2", "12:30", "(5)", "~7", "1.2.3", "∞", "5 apples"],
    "missing": ["", "NA", "None", "nan", "-", "NULL", "n/a", "#N/A", "<NA>", "?", "inf", "-inf"],
    "switches": ["true", "TRUE", "True", "false", "yes", "no", "on", "off", "y", "n", "t", "F"],
    "bits": ["1", "0", "1.0", "0.0"],
    "words": ["auto", "lru", "LRU", "bbr", "cubic", "x, y", 'a "b"', "two\nlines", "v1", "é"],
    "vectors": VECTORS,
}
VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"decimal": ","},
    {"thousands": ","},
    {"decimal": ",", "thousands": "."},
    {"thousands": "_"},
    {"thousands": "'"},
    {"thousands": " "},
)
"""Writings of numbers that pandas reads if somebody says so. `1,200` is a number by two of them."""
UNITS = {"kb": 2**10, "k": 2**10, "mb": 2**20, "s": 1, "ms": 1e-3, "%": 1, "ghz": 1e9, "m": 0}
STATES = dict.fromkeys(("true", "yes", "on", "y", "t", "1", "1.0", "+1"), "on")
WORDS = {"true", "yes", "on", "false", "no", "off"}
STATES |= dict.fromkeys(("false", "no", "off", "n", "f", "0", "0.0"), "off")


@dataclass(frozen=True, kw_only=True)
class Made:
    """A file that somebody may have: its cells, and how they are written."""

    rows: list[list[str]]
    separator: Literal[",", ";", "\t", "|"]
    ends: str
    encoding: str
    name: str
    quoting: Literal[0, 1]
    sep_line: bool

    def written(self, folder: Path) -> Path:
        """The file."""
        text = io.StringIO(newline="")
        lines = f"sep={self.separator}{self.ends}" if self.sep_line else ""
        writer = csv.writer(
            text, delimiter=self.separator, lineterminator=self.ends, quoting=self.quoting
        )
        writer.writerows([[f"c{n}" for n in range(len(self.rows[0]))], *self.rows])
        data = (lines + text.getvalue()).encode(self.encoding)
        path = folder / self.name
        path.write_bytes(gzip.compress(data, 1) if "gz" in self.name.lower() else data)
        return path

    def by_pandas(self, path: Path, **options: Any) -> pd.DataFrame:
        """The same file as pandas reads it; how it is written is said."""
        return pd.read_csv(
            path,
            sep=self.separator,
            encoding=self.encoding,
            compression="gzip" if "gz" in self.name.lower() else None,
            skiprows=int(self.sep_line),
            engine="c",
            **options,
        )


@st.composite
def columns(draw: st.DrawFn, rows: int) -> list[str]:
    """A column of mostly one kind of cells."""
    kinds = draw(st.lists(st.sampled_from(list(CELLS)), min_size=1, max_size=2))
    if draw(st.booleans()):
        kinds.append("numbers")
    cells = [cell for kind in kinds for cell in CELLS[kind]]
    some = draw(st.lists(st.sampled_from(cells), min_size=2, max_size=6, unique=True))
    return draw(st.lists(st.sampled_from(some), min_size=rows, max_size=rows))


TARGETS = ["1", "2.5", "1e3", "0.25", "007", "12"]
WRONG_TARGETS = ["0,5", "1,200", "1 200", "", "nan", "-", "0", "-1", "5 ms", "inf", "٣", "1_000"]


@st.composite
def files(draw: st.DrawFn) -> Made:
    """A table of one to three inputs in any writing, and a target."""
    height = draw(st.integers(2, 12))
    made = draw(st.lists(columns(height), min_size=1, max_size=3))
    goals = st.sampled_from(TARGETS + draw(st.sampled_from([[], [], WRONG_TARGETS])))
    made.append(draw(st.lists(goals, min_size=height, max_size=height)))
    return Made(
        rows=[list(row) for row in zip(*made, strict=True)],
        separator=draw(st.sampled_from([",", ",", ",", ",", ";", "\t", "|"])),
        ends=draw(st.sampled_from(["\n", "\r\n"])),
        encoding=draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"])),
        name=draw(st.sampled_from(["a.csv", "A.CSV", "a.csv.gz", "A.CSV.GZ"])),
        quoting=draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
        sep_line=draw(st.sampled_from([False, False, True])),
    )


def in_units(text: str, *, beside_seconds: bool) -> float:
    """A number with its unit, by a table of the test's own."""
    match = re.fullmatch(r"(.*?)\s*([a-z%]*)", text.lower())
    assert match
    factor = UNITS[match[2]] if match[2] else 1
    return float(match[1]) * (factor or (60 if beside_seconds else 2**20))


def check_numbers(meant: Meaning, texts: list[str], plain: "pd.Series[Any]") -> None:
    assert not plain.isna().any()
    if pd.api.types.is_numeric_dtype(plain):
        assert plain.astype(float).tolist() == meant.numbers.tolist()
        return
    seconds = any(re.search(r"[0-9. ]m?s$", text) for text in texts)
    assert [in_units(text, beside_seconds=seconds) for text in texts] == meant.numbers.tolist()


def check_choices(meant: Meaning, texts: list[str], variants: "list[pd.Series[Any]]") -> None:
    """Choices are no numbers by any writing, and the same where their texts are, and only there."""
    for number, column in enumerate(variants):
        if VARIANTS[number].get("thousands") == " " and set(texts) & set(VECTORS):
            continue
        assert not pd.api.types.is_numeric_dtype(column) or column.isna().all()
    chosen = [meant.choices[int(number)] for number in meant.numbers]
    states = [STATES.get(text.lower()) for text in texts]
    is_switch = not WORDS.isdisjoint(text.lower() for text in texts)
    for text, choice, state in zip(texts, chosen, states, strict=True):
        assert choice in (text or "(missing)", state)
    plain = [(s if is_switch and s else t.casefold()) for t, s in zip(texts, states, strict=True)]
    assert len(set(plain)) == len(set(chosen))


def checked(made: Made, column: Column, number: int, path: Path) -> str:
    """What intop says of a column, held against pandas: numbers, choices or refused."""
    message = made.by_pandas(path, dtype=str, keep_default_na=False).iloc[:, number]
    texts = [column.text(row) for row in range(len(column.codes))]
    assert [text.strip() for text in message] == texts
    if len(column.texts) == 1:
        return "the same in all rows"
    try:
        meant = meaning(column)
    except ConfigurationError as error:
        (problem,) = error.problems
        assert re.match(rf"{re.escape(str(path))}:[0-9]+: column 'c{number}': ", problem)
        return "refused"
    if not meant.choices:
        check_numbers(meant, texts, made.by_pandas(path).iloc[:, number])
        return "numbers"
    by_variant = [made.by_pandas(path, **variant).iloc[:, number] for variant in VARIANTS]
    if meant.choices == ("off", "on"):
        expected = [STATES[text.lower()] for text in texts]
        assert [meant.choices[int(n)] for n in meant.numbers] == expected
        if by_variant[0].dtype == np.bool_:
            assert by_variant[0].astype(float).tolist() == meant.numbers.tolist()
        return "switches"
    check_choices(meant, texts, by_variant)
    return "choices"


def check_target(made: Made, path: Path) -> bool:
    """Whether the table is read with its last column as the target; then pandas has the same."""
    try:
        table = read_table(path, Roles(target=str(len(made.rows[0]))))
    except ConfigurationError as error:
        (problem,) = error.problems
        assert problem.startswith(str(path))
        return False
    expected = made.by_pandas(path).iloc[:, -1].astype(float)
    assert sorted(expected) == sorted(value for trials in table.measured for value in trials)
    return True


def test_where_intop_is_sure_pandas_agrees(tmp_path: Path) -> None:
    verdicts: Counter[str] = Counter()

    @settings(max_examples=TABLES)
    @given(files())
    def agrees(made: Made) -> None:
        path = made.written(tmp_path)
        verdicts["tables"] += 1
        if made.separator != ",":
            message = re.escape(f"its columns are separated by {made.separator!r}: ")
            with pytest.raises(ConfigurationError, match=message):
                TableFile(path)
            verdicts["separators"] += 1
            return
        for number, column in TableFile(path).columns(range(len(made.rows[0]))).items():
            verdicts[checked(made, column, number, path)] += 1
        verdicts["targets"] += check_target(made, path)

    agrees()
    assert verdicts["tables"] >= TABLES
    # A reader that refuses everything would be right as well.
    for verdict in ("numbers", "switches", "choices", "refused", "separators", "targets"):
        assert verdicts[verdict] > 30, verdicts
