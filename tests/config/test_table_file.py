"""Files with tables: what is read of them, and one clear error for all else."""

import bz2
import gzip
import lzma
import random
import sys
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pandas as pd
import pytest

from intop.config import table_file, table_text
from intop.config.table_file import TableFile
from intop.errors import ConfigurationError

PACKED = gzip.compress(b"x,y\n1,2\n", mtime=0)
"""Without the time of packing: workers of one run must agree on the names of tests."""


def written(folder: Path, data: str | bytes, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def problem(path: Path) -> str:
    """What is wrong with a file, without its folder; all of its columns are read."""

    def read() -> None:
        file = TableFile(path)
        file.columns(range(len(file.names)))

    with pytest.raises(ConfigurationError) as caught:
        read()
    (message,) = caught.value.problems
    return message.removeprefix(f"{path.parent}/")


def test_columns_have_each_text_once(tmp_path: Path) -> None:
    file = TableFile(written(tmp_path, 'x,"the, y"\n\n 1 ,b\n2,"a\nb"\n1,b\n'))
    assert file.names == ("x", "the, y")
    result = file.columns([0, 1])
    assert result[0].texts == ("1", "2")
    assert result[0].codes.tolist() == [0, 1, 0]
    assert result[1].texts == ("b", "a\nb")
    assert [result[1].place(row) for row in range(3)] == ["line 3", "line 4", "line 6"]
    assert "a.csv:4: column 'the, y': is odd" in str(result[1].wrong(1, "is odd"))


def test_blanks_in_names_and_beside_units_separate_nothing(tmp_path: Path) -> None:
    file = TableFile(written(tmp_path, "run time,buffer size\n10 ms,5 kb\n"))
    assert file.names == ("run time", "buffer size")
    assert TableFile(written(tmp_path, "run time\n10\n")).names == ("run time",)


def test_only_the_chosen_columns_are_read(tmp_path: Path) -> None:
    file = TableFile(written(tmp_path, "x,y,y\n1,2,3\n"))
    assert {index: column.texts for index, column in file.columns([1]).items()} == {1: ("2",)}


def test_a_byte_order_mark_windows_lines_and_packing_are_no_obstacle(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbfx,y\r\n1,2\r\n"
    archive = BytesIO()
    with ZipFile(archive, "w") as made:
        made.writestr("a.csv", data)
    for path in (
        written(tmp_path, data),
        written(tmp_path, gzip.compress(data), "a.csv.gz"),
        written(tmp_path, bz2.compress(data), "a.csv.bz2"),
        written(tmp_path, lzma.compress(data), "a.csv.xz"),
        written(tmp_path, archive.getvalue(), "a.csv.zip"),
    ):
        file = TableFile(path)
        assert file.names == ("x", "y")
        assert file.columns([0, 1])[1].texts == ("2",)


@pytest.mark.parametrize("name", ["A.CSV.GZ", "a.csv.Gz", "A.Parquet", "A.ZIP"])
def test_how_a_file_is_packed_is_told_by_its_name_in_any_case(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith("Parquet"):
        pd.DataFrame({"x": ["1"], "y": ["2"]}).to_parquet(path)
    elif name.endswith("ZIP"):
        with ZipFile(path, "w") as made:
            made.writestr("a.csv", "x,y\n1,2\n")
    else:
        path.write_bytes(gzip.compress(b"x,y\n1,2\n"))
    assert TableFile(path).columns([1])[1].texts == ("2",)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_table_of_utf_16_is_read(tmp_path: Path, encoding: str) -> None:
    mark = "" if encoding == "utf-16" else "\ufeff"
    data = f"{mark}größe,y\r\n1,2\r\n\r\n3,4\r\n".encode(encoding)
    file = TableFile(written(tmp_path, data))
    assert file.names == ("größe", "y")
    assert [file.columns([0])[0].place(row) for row in range(2)] == ["line 2", "line 4"]


@pytest.mark.parametrize("first", ["sep=,", "SEP=,", '"sep=,"', "sep=, "])
def test_the_line_that_tells_excel_of_commas_is_no_row(tmp_path: Path, first: str) -> None:
    for ends in ("\n", "\r\n"):
        file = TableFile(written(tmp_path, "\ufeff" + ends.join([first, "x,y", "1,2", "3,4"])))
        assert file.names == ("x", "y")
        column = file.columns([0])[0]
        assert column.texts == ("1", "3")
        assert "a.csv:4: column 'x': is odd" in str(column.wrong(1, "is odd"))


def test_one_column_of_a_schema_is_named(tmp_path: Path) -> None:
    file = TableFile(written(tmp_path, "a,3,c,c\n1,2,3,4\n"))
    assert file.named("3") == 1
    for name, message in (
        ("c", "columns 3 and 4 are both called 'c': take one of them out, or export the trials"),
        ("2", "has no column '2', which its schema names; it has 'a', '3', 'c', 'c'"),
    ):
        with pytest.raises(ConfigurationError) as caught:
            file.named(name)
        assert message in str(caught.value)


def test_a_column_is_known_by_its_name_or_its_number(tmp_path: Path) -> None:
    file = TableFile(written(tmp_path, ",b,c,c,2\n1,2,3,4,5\n"))
    assert file.names == ("column 1", "b", "c", "c", "2")
    assert [file.index(word, "--target") for word in ("b", "2", "column 1", "4")] == [1, 4, 0, 3]
    assert file.indexes("c", "--ignore") == [2, 3]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("c", "2 columns are called 'c': say which by its number, as in --x 3 (they are 3, 4)"),
        ("PERFS", "has no column 'PERFS' (--x); near is 'perf'"),
        ("zzz", "has no column 'zzz' (--x); it has 'a', 'b', 'c', 'c', 'perf'"),
        ("6", "has no column '6' (--x)"),
        ("0", "has no column '0' (--x)"),
        ("٣", "has no column '٣' (--x)"),
        ("", "has no column '' (--x)"),
    ],
)
def test_a_column_that_is_not_one_is_told(tmp_path: Path, word: str, message: str) -> None:
    file = TableFile(written(tmp_path, "a,b,c,c,perf\n1,2,3,4,5\n"))
    with pytest.raises(ConfigurationError) as caught:
        file.index(word, "--x")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a.csv: is empty: its first line must name the columns"),
        (b"\n \n", "a.csv: is empty"),
        (b"\n\n", "a.csv: is empty"),
        (b"x,y\n", "a.csv: has no rows below the names of its columns"),
        (b"x,y\n1,2\n\n3\n", "a.csv:4: has 1 field for 2 columns: take it out if it is no"),
        (b'x,y\n"1\n1",2\n\n3\n1,2,3\n', "a.csv:5: has 1 field for 2 columns"),
        (b"x,y\n" + b"1,2\n" * 9 + b'1,"2', "a.csv:11: is not CSV: unexpected end of data"),
        (b"x" + b",x" * 10_000, "a.csv: has more than 10,000 columns: leave rows or columns out"),
        (b"x,y\n1,2,3\n", "a.csv:2: has 3 fields for 2 columns"),
        (b"x,y,x\n1,2,3\n", "a.csv: columns 1 and 3 are both called 'x': rename one, or leave"),
        (b"x;y\n1;2\n", "a.csv: its columns are separated by ';': commas are needed"),
        (b"x\ty\n1\t2\n", "a.csv: its columns are separated by '\\t': commas are needed"),
        (b"x,y\n1,\xe9\n", "a.csv:2: is not UTF-8: convert it, as by iconv -f latin1 -t utf-8"),
        (b"x\0,\0", "a.csv: is UTF-16 without its byte-order mark: save it as UTF-8"),
        (b"\0x\0,\0y\0\n", "a.csv: is UTF-16 without its byte-order mark: save it as UTF-8"),
        (b"PK\x03\x04xl/workbook.xml", "a.csv: is a workbook, not CSV: save its sheet as CSV"),
        (b"\xd0\xcf\x11\xe0\xa1", "a.csv: is a workbook, not CSV: save its sheet as CSV"),
        (PACKED, "a.csv: is packed by gzip: its name has to end in .gz"),
        (b'[{"x": 1}]', "a.csv: is JSON: save it as CSV"),
        (b"<!DOCTYPE html>", "a.csv: is HTML or XML: save it as CSV"),
        (b"x,y\n1,2,3\n2,3,4\n", "a.csv:2: has 3 fields for 2 columns: so has each row: name"),
        (b"x,y\n1,2,\n2,3,\n", "a.csv:2: has 3 fields for 2 columns: so has each row: name the"),
        (b"Run of May\nx,y\n1,2\n", "a.csv:2: has 2 fields for 1 column: the first line must"),
        (b"x,y\n1,2\n3,4\n(2 rows)\n", "a.csv:4: has 1 field for 2 columns: take it out if it"),
        (b"16,2.5\n32,3.5\n", "a.csv: has numbers in its first line, which must name the columns"),
        (b'"x" "y"\n"a" 1 2\n"b" 2 3\n', "a.csv: its columns are separated by ' ': commas are"),
        (b'"x"\t"y"\n"a"\t1\t2\n', "a.csv: its columns are separated by '\\t': commas are"),
        (b"\xff\xfex\0,\0y\0\n\0\0\0", "a.csv:2: has a NUL character: this is no CSV file"),
        (b"\xff\xfex\0\n\0,", "a.csv:2: is not UTF-16, as its first two bytes say: save it as"),
        (b"\xff\xfex\0,\0", "a.csv: has no rows below the names of its columns"),
        (b"a;b;p99\n1,5;2,25;3\n", "a.csv: its columns are separated by ';': commas are needed"),
        (b"a;b;p99\n1,5;2;3\n1;2\n", "a.csv: its columns are separated by ';': commas are nee"),
        (b"a\tb\n1,5\t2\n", "a.csv: its columns are separated by '\\t': commas are needed"),
        (b"a|b\n1,5|2\n", "a.csv: its columns are separated by '|': commas are needed"),
        (b"a (x, y);b\n1,5;2\n1;2\n", "a.csv: its columns are separated by ';': commas are nee"),
        (b"a (x, y);b\n1,5;2\n1,25;2\n", "a.csv: its columns are separated by ';': commas are"),
        (b"a b p99\n1 2 3\n4 5 6\n", "a.csv: its columns are separated by ' ': commas are needed"),
        (b"a b p99\n1,5 2 3\n", "a.csv: its columns are separated by ' ': commas are needed"),
        (b"sep=;\na;b\n1,5;2\n", "a.csv: its columns are separated by ';': commas are needed"),
        (b"\xef\xbb\xbfSEP=\t\r\na\tb\r\n", "a.csv: its columns are separated by '\\t': comm"),
        (b"sep=,\r\nx,y\r\n1,2\r\n\r\n3\r\n", "a.csv:5: has 1 field for 2 columns"),
        (b"\nx" + b",x" * 10_000, "a.csv: has more than 10,000 columns: leave rows or columns"),
        (b"x,y\n1,2\n\0,3\n", "a.csv:3: has a NUL byte"),
        (b'x,y\n1,"2\n3,4\n', "a.csv:2: is not CSV: unexpected end of data"),
        (b'x,y\n1,"2"3\n', "a.csv:2: is not CSV: ',' expected after '\"'"),
        (b"x,y\n1," + b"9" * 200_000, "a.csv:2: is not CSV: field larger than field limit"),
    ],
)
def test_what_is_no_table_is_told_with_its_line(tmp_path: Path, data: bytes, message: str) -> None:
    assert problem(written(tmp_path, data)).startswith(message)


def test_numbered_columns_are_names(tmp_path: Path) -> None:
    assert TableFile(written(tmp_path, "0,1\n5,6\n")).names == ("0", "1")
    assert TableFile(written(tmp_path, "1,2\n5,6\n")).names == ("1", "2")


def test_a_table_of_one_column_says_what_separates_columns(tmp_path: Path) -> None:
    file = TableFile(written(tmp_path, "a:b\n1:2\n"))
    with pytest.raises(ConfigurationError) as caught:
        file.index("b", "--x")
    assert "has one column only, 'a:b': a comma has to separate columns (--x)" in str(caught.value)


def test_a_column_that_pandas_had_for_an_index_is_a_column(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pd.DataFrame({"x": [1, 2], "y": [3, 4]}).set_index("x").to_parquet(path)
    assert TableFile(path).names == ("x", "y")


def test_what_macos_adds_to_an_archive_is_no_second_table(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "x,y\n1,2\n")
        archive.writestr("__MACOSX/._a.csv", "?")
    assert TableFile(path).names == ("x", "y")


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    assert problem(tmp_path / "no.csv") == "no.csv: can't be read: No such file or directory"
    (tmp_path / "dir.csv").mkdir()
    assert problem(tmp_path / "dir.csv") == "dir.csv: can't be read: Is a directory"
    assert problem(Path("/dev/zero")) == "zero: can't be read: Is not a file"


@pytest.mark.parametrize("data", [b"x,y\n", PACKED[:-9], PACKED[:3], PACKED[:12] + b"?" * 9])
def test_what_gzip_cannot_unpack_is_told(tmp_path: Path, data: bytes) -> None:
    assert problem(written(tmp_path, data, "a.csv.gz")).startswith("a.csv.gz: can't be read: ")


@pytest.mark.parametrize("name", ["a.csv.bz2", "a.csv.xz", "a.csv.zip", "a.parquet"])
@pytest.mark.parametrize("data", [b"", b"x,y\n1,2\n", b"PK\3\4", b"BZh9", b"PAR1....PAR1"])
def test_what_is_not_packed_as_its_name_says_is_told(
    tmp_path: Path, name: str, data: bytes
) -> None:
    assert problem(written(tmp_path, data, name)).startswith(f"{name}: ")


def test_an_archive_of_several_files_is_told(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "a.zip", "w") as made:
        made.writestr("a.csv", "x\n1\n")
        made.writestr("b.csv", "x\n1\n")
    assert (
        problem(tmp_path / "a.zip")
        == "a.zip: can't be read: the archive has 2 files, and one is needed"
    )


def test_parquet_is_read_as_the_same_text(tmp_path: Path) -> None:
    frame = pd.DataFrame({"n": [1, 2, 2], "f": [0.1, None, 1e-7], "t": ["16k", None, " on "]})
    frame["b"] = [True, False, True]
    frame.to_parquet(tmp_path / "a.parquet")
    file = TableFile(tmp_path / "a.parquet")
    assert file.names == ("n", "f", "t", "b")
    result = file.columns(range(4))
    texts = {c.name: [c.texts[code] for code in c.codes] for c in result.values()}
    assert texts == {
        "n": ["1", "2", "2"],
        "f": ["0.1", "", "1e-07"],
        "t": ["16k", "", "on"],
        "b": ["True", "False", "True"],
    }
    assert "a.parquet: row 2: column 'f': is odd" in str(result[1].wrong(1, "is odd"))


def test_damaged_parquet_is_told_or_read(tmp_path: Path) -> None:
    frame = pd.DataFrame({"n": [1, 2, 3], "t": ["x", "y", "z"], "f": [0.1, 0.2, None]})
    frame.to_parquet(tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    message: list[str] = []
    for seed in range(300):
        rng, data = random.Random(seed), bytearray(whole)
        for _ in range(rng.choice([1, 3, 20])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            TableFile(written(tmp_path, bytes(data), "b.parquet"))
        except ConfigurationError as error:
            message += error.problems
    assert 100 < len(message) < 300
    assert all(one.startswith(f"{tmp_path / 'b.parquet'}: ") for one in message)


def test_without_pyarrow_the_command_that_installs_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = problem(written(tmp_path, b"", "a.parquet"))
    assert (
        message
        == "a.parquet: Parquet needs pyarrow, which is not installed: pip install 'intop[parquet]'"
    )


def test_a_large_parquet_file_is_told_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_file, "MOST_CELLS", 1_000)
    monkeypatch.setattr(pd, "read_parquet", lambda *_, **__: pytest.fail("it was read"))
    pd.DataFrame({"x": ["long" * 1_000] * 2_000}).to_parquet(tmp_path / "a.parquet")
    message = "has more than 1,000 cells: leave rows or columns out"
    assert problem(tmp_path / "a.parquet") == f"a.parquet: {message}"


def test_a_small_file_of_endless_rows_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_text, "LARGEST_FILE", 2_000_000)
    bomb = gzip.compress(b"x,y\n" + b"1,2\n" * 1_000_000, mtime=0)
    assert (
        problem(written(tmp_path, bomb, "a.csv.gz"))
        == "a.csv.gz: has more than 2 MB: leave rows or columns out"
    )


def test_too_many_cells_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_file, "MOST_CELLS", 6)
    path = written(tmp_path, "x,y\n" + "1,2\n" * 4)
    assert problem(path) == "a.csv: has more than 6 cells: leave rows or columns out"
