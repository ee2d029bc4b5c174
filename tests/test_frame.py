"""The data frame of trials, and `intop.trials`, which makes one of a store."""

import json
from dataclasses import fields, replace
from io import BytesIO
from pathlib import Path

import pandas as pd
import pytest

import intop
from builders.testbeds import probe_of
from builders.trials import METRICS as MEASURED
from builders.trials import trial
from intop.config.catalogue import load_catalogue
from intop.config.counters import load_counters
from intop.config.exported import read_exports
from intop.config.table_file import TableFile
from intop.domain.configuration import Configuration
from intop.domain.counters import HostCounters
from intop.domain.encoding import Variable
from intop.domain.histogram import Histogram
from intop.domain.spreadsheet import text_of
from intop.domain.table import Recipe, schema_of
from intop.domain.trial import Conditions, HostMetrics, Trial
from intop.errors import ResultMissingError, UsageError
from intop.frame import (
    CONDITIONS,
    ERRORS,
    METRICS,
    Part,
    fields_of,
    frame,
    schema,
    to_csv,
    to_parquet,
)
from intop.hosts.load import engine, wrk2
from intop.resources import shipped
from intop.store import Subject, opened

PARAMETERS = {p.key: p for p in load_catalogue(shipped("configs") / "parameters.toml").parameters}
RMEM, CONTROL = "net.ipv4.tcp_rmem", "net.ipv4.tcp_congestion_control"
DEFAULTS = {RMEM: "4096\t131072\t6291456", CONTROL: "cubic", "net.core.somaxconn": "4096"}
TUNED = Configuration({RMEM: "4096 8192 65536", CONTROL: "bbr"})


def part(*trials: Trial, **changes: object) -> Part:
    whole = Part(
        study="mine", campaign=3, arch="x86", workload="slt", defaults=DEFAULTS, trials=trials
    )
    return replace(whole, **changes)


def made() -> tuple[Trial, ...]:
    errors = {"timeout": 2, "strange": 1}
    tuned = trial(TUNED, index=1, arm="tuned", number=2, stage="judge")
    tuned = replace(tuned, histogram=Histogram.from_pairs([(2_000, 100), (2_000_000, 3)]))
    return (
        trial(p99_us=1_500, stage="collect"),
        replace(tuned, errors=errors, metrics={"load": MEASURED, "lb": MEASURED}),
        trial(TUNED, index=2, status="failed", stage="collect"),
    )


def test_a_row_has_all_that_is_known_of_a_trial() -> None:
    table = frame([part(*made())], PARAMETERS)
    one = table.iloc[1]
    assert tuple(table.iloc[1, :6]) == ("mine", 3, "x86", "slt", "judge", 1)
    assert (one["round"], one["series"], one["arm"]) == (2, 1, "tuned")
    assert TUNED.digest == one["configuration"]
    assert pd.Timestamp("2026-01-01", tz="UTC") == one["started_at"]
    assert (one["rate_rps"], one["connections"], one["machine"]) == (100.0, 8, "x86_64")
    # Of 103 requests three failed: they count as the timeout of 2 s.
    assert one["p50_ms"] == one["p90_ms"] == 2.0 < 1_999 < one["judged_ms"] == one["max_ms"]
    assert (made()[1].judged_ms, made()[1].tail_ms) == (one["judged_ms"], one["tail_ms"])
    assert (one["errors_timeout"], one["errors_read"], one["errors_strange"]) == (2, 0, 1)
    assert (one["requests"], one["lb.cpu"], one["load.memory_mib"]) == (103, 0.25, 100.5)


def test_counters_are_columns_where_they_are_asked_for_and_moved() -> None:
    counted = HostCounters(
        at_s=(1.0, 2.0),
        growth={"TcpExt.TCPTimeouts": (1, 2), "softnet.cpu0.dropped": (0, 5), "TcpExt.New": (1, 0)},
        levels={"clients.rtt_us.p50": (10.5, 7)},
    )
    blind = HostCounters(at_s=(1.0,), unread=("sockets",))
    trials = [
        replace(one, counters=c)
        for one, c in zip(made(), ({"lb": counted}, {"lb": blind}, {}), strict=True)
    ]
    explained = load_counters(shipped("configs") / "counters.toml")
    names = [f"lb.{n}" for n in ("TcpExt.New", "TcpExt.TCPTimeouts", "clients.rtt_us.p50")]
    names.append("lb.softnet.cpu0.dropped")
    fields = {f.name: f.meaning for f in fields_of([part(*trials)], PARAMETERS, explained)}
    assert names == list(fields)[-4:]
    assert fields["lb.TcpExt.New"] == "a counter that the catalogue does not explain"
    assert fields["lb.TcpExt.TCPTimeouts"] == "A retransmission timer ran out"
    assert fields["lb.clients.rtt_us.p50"].endswith("; the highest at any time")
    table = frame([part(*trials)], PARAMETERS, explained)
    assert table.loc[0, names].tolist() == [1, 3, 10.5, 5]
    # What a host did not show is not known; what did not move is 0.
    assert table.loc[1, [names[0], names[1], names[3]]].tolist() == [0, 0, 0]
    assert table.loc[1, names[2]] != table.loc[1, names[2]]
    assert table.loc[2, names].isna().all()
    assert not [n for n in frame([part(*trials)], PARAMETERS) if "TcpExt" in n]


def test_what_a_configuration_leaves_alone_is_the_hosts_default() -> None:
    table = frame([part(*made())], PARAMETERS)
    assert table[f"{RMEM}[default]"].tolist() == [131072, 8192, 8192]
    assert table[f"{RMEM}[max]"].tolist() == [6291456, 65536, 65536]
    assert table[CONTROL].tolist() == ["cubic", "bbr", "bbr"]
    assert "net.core.somaxconn" not in table  # no trial sets it


def test_a_default_that_nobody_knows_is_not_made_up() -> None:
    table = frame([part(*made(), defaults={})], PARAMETERS)
    assert table[f"{RMEM}[max]"].isna().tolist() == [True, False, False]
    assert table[CONTROL].isna().tolist() == [True, False, False]


def test_a_failed_trial_has_no_latencies() -> None:
    failed = frame([part(*made())], PARAMETERS).iloc[2]
    assert failed["status"] == "failed"
    assert failed[["judged_ms", "tail_ms", "requests", "errors_timeout", "lb.cpu"]].isna().all()


def test_values_of_64_bits_without_a_sign_are_kept_as_floats() -> None:
    trials = [trial(Configuration({"net.core.somaxconn": str(2**64 - 1)}))]
    assert frame([part(*trials)], PARAMETERS)["net.core.somaxconn"].tolist() == [2.0**64]


def test_a_key_that_the_catalogue_does_not_know_is_text() -> None:
    trials = [trial(Configuration({"net.made.up": "1 2"}))]
    assert frame([part(*trials)], PARAMETERS)["net.made.up"].tolist() == ["1 2"]


def test_every_column_is_documented_once_and_in_order() -> None:
    parts = [part(*made())]
    known = fields_of(parts, PARAMETERS)
    assert [f.name for f in known] == list(frame(parts, PARAMETERS))
    assert len({f.name for f in known}) == len(known)
    assert all(f.meaning for f in known)
    document = json.loads(schema(known, ()))
    assert [f.name for f in known] == [f["name"] for f in document["fields"]]


def test_nothing_of_a_trial_is_forgotten() -> None:
    """Whoever adds a condition, a metric or a kind of error adds its column."""
    subject = {"arch", "workload"}
    assert {f.name for f in fields(Conditions)} - subject == {f.name for f in CONDITIONS}
    assert {f.name for f in fields(HostMetrics)} == {f.name for f in METRICS}
    kinds = [*engine.ERROR_KINDS, engine.PENDING]
    assert set(wrk2.ERROR_KINDS) <= set(kinds)
    assert {f"errors_{kind}" for kind in kinds} == {f.name for f in ERRORS}


def test_csv_keeps_every_digit() -> None:
    table = frame([part(*made())], PARAMETERS)
    table["judged_ms"] = [0.1 + 0.2, 1 / 3, None]
    again = pd.read_csv(BytesIO(to_csv(table)))
    assert table["judged_ms"].dropna().tolist() == again["judged_ms"].dropna().tolist()
    for name in ("a.csv.gz", "a.csv.bz2", "a.csv.xz"):
        assert to_csv(table, Path(name)) == to_csv(table, Path(name))


FORMULAS = ("=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "a\r=1", "'=1", "'a")


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize("text", FORMULAS, ids=repr)
def test_no_text_of_a_host_is_a_formula_in_csv(tmp_path: Path, text: str, name: str) -> None:
    measured = {"lb": replace(MEASURED, foreign_program=text, clock_step_s=-1.5)}
    hostile = replace(trial(TUNED, 1_500, stage="collect"), detail=text, metrics=measured)
    (tmp_path / name).write_bytes(
        to_csv(frame([part(hostile, study=text)], PARAMETERS), Path(name))
    )
    file = TableFile(tmp_path / name)
    for column in ("study", "detail", "lb.foreign_program"):
        index = file.index(column, "")
        shown = file.columns([index])[index].text(0)
        assert not shown.startswith(("=", "+", "-", "@", "\t", "\r"))
        # Blanks around a text are no part of it where a table is read.
        assert text.strip() in {text_of(shown), text_of(shown).strip()}
    index = file.index("lb.clock_step_s", "")
    assert file.columns([index])[index].text(0) == "-1.5"


def test_a_negative_number_of_a_key_that_is_text_stays_one() -> None:
    table = frame([part(trial(Configuration({"net.x.y": "-1"}), 1_500))], PARAMETERS)
    assert pd.read_csv(BytesIO(to_csv(table)))["net.x.y"].tolist() == [-1]


@pytest.mark.parametrize("study", ["=mine", "-mine", "'=mine", "mine"])
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_export_is_read_back_as_it_was(tmp_path: Path, study: str, form: str) -> None:
    """A study and a choice, by which rows are found and told apart."""
    choices = ("=bbr", "'=bbr", "-cubic", "5")
    trials = [
        trial(Configuration({CONTROL: choice}), 1_500 + n, index=n, stage="collect")
        for n, choice in enumerate(choices)
    ]
    table = frame([part(*trials, study=study)], PARAMETERS)
    path = tmp_path / f"a.{form}"
    path.write_bytes(to_csv(table) if form == "csv" else to_parquet(table))
    recipe = Recipe(
        study=study,
        campaign=3,
        arch="x86",
        workload="slt",
        column="judged_ms",
        target="P99",
        unit="ms",
        variables=(Variable(name=CONTROL, key=CONTROL, choices=choices),),
        folds=2,
        repeats=1,
        trials=1,
        timeout_s=None,
        seed=1,
        level=0.95,
    )
    schema_of(path).write_bytes(schema((), [recipe]))
    (made,) = read_exports(path, [recipe])
    assert made.values[:, 0].tolist() == [0, 1, 2, 3]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "mine.db"
    with opened(str(path)) as opened_store:
        for study in ("one", "two"):
            campaign = opened_store.begin(study, seed=1, tool_version="0.1.0")
            for arch in ("x86", "arm"):
                subject = Subject(campaign=campaign, arch=arch, workload="slt")
                one = trial(TUNED, 1_500)
                opened_store.write_plan(subject, "collect", [one.planned])
                opened_store.add(subject, replace(one, status="disturbed"))
                opened_store.add(subject, replace(one, attempt=1))
                opened_store.put(subject, probe_of(DEFAULTS))
    return path


def test_a_store_is_one_call_away(store: Path) -> None:
    table = intop.trials(store)
    assert table["study"].tolist() == ["one"] * 4 + ["two"] * 4
    assert table["status"].tolist() == ["disturbed", "ok"] * 4
    assert intop.trials(str(store), study="two")["arch"].tolist() == ["x86"] * 2 + ["arm"] * 2
    assert set(intop.trials(store, campaign=1, arch="arm")["campaign"]) == {1}
    assert table[f"{RMEM}[default]"].iloc[0] == 8192


def test_a_store_without_such_trials_is_told(store: Path) -> None:
    for name, changes in ((store, {"arch": "riscv"}), (store.with_name("no.db"), {})):
        with pytest.raises(ResultMissingError, match="has no such trials"):
            intop.trials(name, **changes)
    store.with_name("text.db").write_text("no database")
    with pytest.raises(UsageError, match="can't be opened"):
        intop.trials(store.with_name("text.db"))
