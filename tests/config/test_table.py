"""Foreign tables: rows to configurations with their trials, and what no model can learn from."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.damage import damaged
from intop.config.table import Roles, read_table
from intop.domain.table import Table
from intop.errors import ConfigurationError

# As tuners write their logs: several runs, each begun with the default, workers, failures.
LOG = """\
tool,run,step,worker,cache,ttl,eviction,lazy,limit,cores,seconds
mine,0,0,a,64mb,10s,lru,no,0,4,0.50
mine,0,1,a,8gb,250ms,random,yes,100,9,0.75
mine,0,1,b,8192MB,0.25s,random,yes,100,9,0.75
mine,0,2,b,1mb,2m,none,yes,20000,12,99.0
mine,1,0,c,64mb,10s,lru,no,0,4,0.60
mine,1,1,c,512kb,5s,lfu,no,3,4,99
"""
ROLES: dict[str, Any] = {"target": "seconds", "group": ("run", "step"), "ignored": ("worker",)}


def read(folder: Path, text: str, **roles: Any) -> Table:
    path = folder / "log.csv"
    path.write_text(text)
    return read_table(path, Roles(**{"target": "y", **roles}))


def problem(folder: Path, text: str, **roles: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        read(folder, text, **roles)
    (message,) = caught.value.problems
    return message.removeprefix(f"{folder}/")


def test_a_tuners_log_is_read(tmp_path: Path) -> None:
    result = read(tmp_path, LOG, failed=("99",), **ROLES)
    cache, ttl, eviction, lazy, limit, cores = result.variables
    assert (cache.low, cache.high, cache.scale) == (2.0**26, 2.0**33, "log")
    assert (ttl.low, ttl.high) == (0.25, 10)
    assert (eviction.choices, lazy.choices) == (("lru", "random"), ("off", "on"))
    assert (limit.name, limit.low, limit.high, limit.scale) == ("limit", 0, 100, "linear")
    assert result.values.tolist() == [[2.0**26, 10, 0, 0, 0, 4], [2.0**33, 0.25, 1, 1, 100, 9]]
    assert result.measured == ((0.5, 0.6), (0.75, 0.75))
    assert cores.key == "cores"


def test_all_that_is_left_out_is_counted(tmp_path: Path) -> None:
    result = read(tmp_path, LOG, failed=("99",), **ROLES).inventory
    assert (result.rows, result.failed, result.trials) == (6, 2, 4)
    assert (result.configurations, result.replicated, result.copies, result.lost) == (2, 2, 1, 2)
    assert result.left_out == {"tool": "the same in all rows"}
    assert result.target == "seconds"


@pytest.mark.parametrize("word", ["99", "99.0", "9.9e1", " 99 "])
def test_a_failed_target_is_compared_as_a_number(tmp_path: Path, word: str) -> None:
    assert read(tmp_path, LOG, failed=(word,), **ROLES).inventory.failed == 2


def test_failed_trials_may_have_any_text(tmp_path: Path) -> None:
    text = "x,y\n1,2\n2,3\n3,Time-out\n4,\n5,nan\n6,0\n"
    result = read(tmp_path, text, failed=("time-out", "", "NaN", "0"))
    assert (result.inventory.failed, result.inventory.trials, result.inventory.lost) == (4, 2, 4)
    assert (result.variables[0].low, result.variables[0].high) == (1, 2)


def test_a_failure_of_a_configuration_that_also_worked_loses_nothing(tmp_path: Path) -> None:
    result = read(tmp_path, "x,y\n1,2\n1,0\n2,3\n", failed=("0",))
    assert result.measured == ((2.0,), (3.0,))
    assert (result.inventory.failed, result.inventory.lost) == (1, 0)


def test_rows_of_equal_inputs_are_replicates_without_a_group(tmp_path: Path) -> None:
    result = read(tmp_path, "size,y\n1kb,5\n2kb,6\n1024,7\n")
    assert result.measured == ((5.0, 7.0), (6.0,))


def test_rows_of_one_group_must_have_equal_inputs(tmp_path: Path) -> None:
    message = problem(tmp_path, LOG.replace("9,0.75", "8,0.75", 1), failed=("99",), **ROLES)
    assert message == (
        "log.csv:4: is of the same group as line 3 ('run' '0', 'step' '1'), and 'cores' is 9 here "
        "and 8 there: leave such columns out by --ignore, or name a further --group"
    )


def test_the_target_may_be_in_any_column_and_be_one_of_several(tmp_path: Path) -> None:
    text = "\ufeffy,,b,y\n1,1,on,7\n2,3,off,8\n"
    result = read(tmp_path, text, target="1", ignored=("y",))
    assert [v.name for v in result.variables] == ["column 2", "b"]
    assert result.measured == ((1.0,), (2.0,))
    assert read(tmp_path, text, target="4", ignored=("1",)).measured == ((7.0,), (8.0,))
    assert "columns 1 and 4 are both called 'y'" in problem(tmp_path, text, target="b")
    assert "2 columns are called 'y': say which by its number" in problem(tmp_path, text)


def test_identifiers_and_row_numbers_are_left_out(tmp_path: Path) -> None:
    rows = [f"{n},host-{n},{n % 2},{n % 3},{n + 1}" for n in range(5, 15)]
    result = read(tmp_path, "\n".join([",id,a,b,y", *rows]))
    assert [v.name for v in result.variables] == ["a", "b"]
    assert result.inventory.left_out == {
        "id": "10 different texts in 10 rows, as an identifier has",
        "column 1": "counts the rows",
    }


@pytest.mark.parametrize("cell", ["None", "-", '"0,5"', '"1,200"', "1 200", "12O", "unlimited"])
def test_numbers_with_another_text_among_them_are_no_identifier(tmp_path: Path, cell: str) -> None:
    rows = [f"{n * n},{n % 2},{n + 1}" for n in range(5, 15)]
    message = problem(tmp_path, "\n".join(["a,b,y", *rows, f"{cell},1,3"]))
    assert message.startswith("log.csv:12: column 'a': ")


def test_a_sweep_of_one_input_is_no_row_number(tmp_path: Path) -> None:
    result = read(tmp_path, "threads,y\n1,8\n2,4\n3,3\n")
    assert [v.name for v in result.variables] == ["threads"]


def test_what_varies_among_failed_rows_only_is_left_out(tmp_path: Path) -> None:
    result = read(tmp_path, "x,m,y\n1,a,2\n2,a,3\n3,b,0\n", failed=("0",))
    assert [v.name for v in result.variables] == ["x"]
    assert result.inventory.left_out == {"m": "the same in all rows that did not fail"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y\n1,2\n", "log.csv: has one row: models need several configurations"),
        ("x,y\n1,2\n2,abc\n", "log.csv:3: column 'y': the target must be a plain number"),
        ("x,y\n1,2\n2,3 ms\n", "log.csv:3: column 'y': the target must be a plain number"),
        ("x,y\n1,2\n2,nan\n", "log.csv:3: column 'y': the target must be a plain number"),
        ("x,y\n1,inf\n2,3\n", "log.csv:2: column 'y': the target must be a plain number"),
        (
            "x,y\n1,\n2,3\n",
            "log.csv:2: column 'y': the target must be a plain number",
        ),
        (
            'x,y\n1,2\n2,"0,5"\n',
            "log.csv:3: column 'y': the target must be a plain number, and is '0,5', which has a c",
        ),
        ("x,y\n1,1e999\n2,3\n", "log.csv:2: column 'y': the target must be a plain number"),
        ("x,y\n1,1e-150\n2,3\n", "log.csv:2: column 'y': the target must be from 1e-100 to"),
        ("x,y\n1,2\n2,-1\n", "log.csv:3: column 'y': the target must be positive, since models"),
        ("x,y\n1,2\n2,0\n", "log.csv:3: column 'y': the target must be positive, since models"),
        ("x,y\n1,2\n2,2.0\n", "log.csv: the target 'y' is 2 in all rows: there is nothing to"),
        ("x,y\n1,2\n1,3\n", "log.csv: no input varies in a way that models can use ('x': the same"),
        ("y\n2\n3\n", "log.csv: no input varies in a way that models can use (it has none)"),
        ("x,y\n,2\n2,3\n", "log.csv:2: column 'x': has no number ('') where others have"),
        ("x,z\n1,2\n2,3\n", "log.csv: has no column 'y' (--target); it has 'x', 'z'"),
    ],
)
def test_what_models_cannot_learn_from_is_told(tmp_path: Path, text: str, message: str) -> None:
    assert problem(tmp_path, text).startswith(message)


def test_the_next_step_is_told_for_a_target(tmp_path: Path) -> None:
    assert "say --failed 'out of memory' if failed trials have that, else correct it" in problem(
        tmp_path, "x,y\n1,2\n2,out of memory\n"
    )
    assert "and is empty: say --failed '' if" in problem(tmp_path, "x,y\n1,2\n2,\n")
    assert problem(tmp_path, "x,y\n1,2\n2,0\n").endswith(
        "say --failed 0 if failed trials have that, else shift or turn the whole column"
    )


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"failed": ("2", "3")}, "log.csv: the target 'y' says that all 2 rows have failed"),
        ({"failed": ("2",)}, "log.csv: the target 'y' is 3 in all rows that did not fail"),
        ({"ignored": ("y",)}, "--target and --ignore both name 'y'"),
        ({"ignored": ("2",)}, "--target and --ignore both name '2'"),
        ({"group": ("y",)}, "--target and --group both name 'y'"),
        ({"ignored": ("z",)}, "log.csv: has no column 'z' (--ignore)"),
        ({"group": ("z",)}, "log.csv: has no column 'z' (--group)"),
    ],
)
def test_options_that_leave_nothing_are_told(
    tmp_path: Path, roles: dict[str, Any], message: str
) -> None:
    assert problem(tmp_path, "x,y\n1,2\n2,3\n", **roles).startswith(message)


def test_no_bytes_lead_to_another_error(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    files = st.one_of(
        st.binary(max_size=100),
        damaged(LOG).map(lambda text: text.encode(errors="surrogatepass")),
        damaged(LOG).map(lambda text: text.encode("utf-16", errors="surrogatepass")),
    )

    @given(files)
    def one(data: bytes) -> None:
        path.write_bytes(data)
        try:
            result = read_table(path, Roles(**ROLES, failed=("99",)))
        except ConfigurationError as error:
            (message,) = error.problems
            assert message.startswith(str(path))
            return
        assert (len(result.measured), len(result.variables)) == result.values.shape
        assert np.isfinite(result.values).all()
        assert all(0 < value < np.inf for trials in result.measured for value in trials)

    one()
