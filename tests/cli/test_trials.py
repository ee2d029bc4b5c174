"""`intop export` of trials, and `intop train --data` of it: the models of the campaign again."""

import json
import math
import random
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from builders.campaigns import LAB
from builders.testbeds import probe_of
from builders.trials import trial
from intop.campaign.train.stage import Train
from intop.cli import cli
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.table import schema_of
from intop.errors import ConfigurationError, ResultMissingError, UsageError
from intop.store import Subject, opened

BUDGET = """\
[workload.dlt]
rate_rps = 100
connections = 8
threads = 2
duration_s = 2

[budget]
folds = 2
repeats = 2
tuning_trials = 1
"""
RMEM, CONTROL, WINDOW, SACK = (
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_sack",
)
DEFAULTS = {
    RMEM: "4096 131072 6291456",
    CONTROL: "cubic",
    WINDOW: "1",
    "net.ipv4.tcp_fin_timeout": "60",
    "net.ipv4.tcp_available_congestion_control": "reno cubic bbr",
}
FAST = ("SVR",)
OPTIONS = tuple(word for name in FAST for word in ("--family", name))
Run = Callable[..., str]


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two workloads of 14 configurations and the default; some trials failed or were disturbed."""
    monkeypatch.setattr(Train, "families", FAST)
    path = tmp_path / "study.toml"
    path.write_text((LAB + BUDGET).format(folder=tmp_path))
    with opened(str(tmp_path / "mine.db")) as store:
        campaign = store.begin("mine", seed=7, tool_version="0.1.0")
        for workload in ("slt", "dlt"):
            rng = random.Random(workload)
            subject = Subject(campaign=campaign, arch="x86", workload=workload)
            store.put(subject, probe_of(DEFAULTS))
            made = [DEFAULT, *(configuration(rng) for _ in range(14))]
            # What it has by default, written: the same values under another name.
            made.append(Configuration({"net.ipv4.tcp_fin_timeout": "60"}))
            # Another key was varied in it, too, which is none of the tuned ones by now.
            drawn = [configuration(rng) for _ in range(12)]
            drawn = [Configuration({**c.values, SACK: "0"}) for c in drawn]
            stages = {
                "screen": [*drawn, DEFAULT, drawn[0]],
                "collect": [*made, made[1], DEFAULT],
                "refine": [*made[3:6], DEFAULT],
            }
            for stage, planned in stages.items():
                trials = [
                    trial(c, latency(c, rng), stage=stage, index=n) for n, c in enumerate(planned)
                ]
                if stage == "screen":
                    default = replace(trials[12].planned, role="sentinel")
                    trials[12] = replace(trials[12], planned=default)
                store.write_plan(subject, stage, [t.planned for t in trials])
                for n, one in enumerate(trials):
                    if stage == "collect" and n == 4:
                        store.add(subject, replace(one, status="disturbed", detail='a, "b"\nc'))
                        one = replace(one, attempt=1, errors={"timeout": 1})
                    if stage == "collect" and n == 9:
                        one = trial(one.configuration, stage=stage, index=n, status="failed")
                    store.add(subject, one)
    return path


def configuration(rng: random.Random) -> Configuration:
    low = rng.randrange(4096, 8192)
    return Configuration(
        {
            RMEM: f"{low} {rng.randrange(low, 100_000)} {rng.randrange(100_000, 9_000_000)}",
            CONTROL: rng.choice(["reno", "cubic", "bbr"]),
            WINDOW: rng.choice("01"),
            "net.ipv4.tcp_fin_timeout": str(rng.randrange(15, 60)),
        }
    )


def latency(configuration: Configuration, rng: random.Random) -> int:
    """P99 in us: it grows with the buffer, and by noise."""
    largest = int(configuration.values.get(RMEM, DEFAULTS[RMEM]).split()[-1])
    return int(3_000 * math.log(largest) * rng.lognormvariate(0, 0.1))


@pytest.fixture
def run(study: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """What stands on stdout, without what varies from run to run: how long it took."""

    def words(*words: object) -> str:
        capfd.readouterr()
        cli([str(word) for word in words], standalone_mode=False)
        return re.sub(r"[0-9.]+ s\b", "", capfd.readouterr().out)

    return words


def test_an_export_prints_the_errors_of_the_store(study: Path, run: Run) -> None:
    stored = run("train", "-c", study)
    assert stored.count("error of the models on configurations they have not seen") == 2
    assert (
        stored.count(
            "(21 trials of 15 configurations, learned with 12 of the screening, 4 parameters)"
        )
        == 2
    )
    path = study.parent / "sds.csv"
    run("export", "-c", study, "--format", "csv", "--output", path)
    assert errors(stored) == errors(run("train", "--data", path, *OPTIONS))


@pytest.mark.parametrize(
    ("name", "objective"), [("sds.csv.xz", "component"), ("sds.parquet", "p99")]
)
def test_they_are_equal_to_the_last_digit(study: Path, run: Run, name: str, objective: str) -> None:
    edited(study, 'name = "mine"', f'name = "mine"\nobjective = "{objective}"')
    path = study.parent / name
    form = "parquet" if path.suffix == ".parquet" else "csv"
    run("export", "-c", study, "--format", form, "--output", path)
    stored = json.loads(run("train", "-c", study, "--json"))
    again = json.loads(run("train", "--data", path, *OPTIONS, "--json"))
    assert ["x86 slt", "x86 dlt"] == list(stored) == list(again)
    for title, training in stored.items():
        message = ["keys", "fitted", "trials", "configurations", "lent", "target", "unit"]
        if objective == "component":  # that of P99 needs the latencies, which no table has
            message.append("ceiling")
        assert [training[key] for key in message] == [again[title][key] for key in message]
        assert (12 if objective == "p99" else 0) == training["lent"]
        for one, other in zip(training["errors"], again[title]["errors"], strict=True):
            assert one | {"seconds": 0} == other | {"seconds": 0}


def errors(out: str) -> list[str]:
    """The printed tables of errors, line by line; what follows them says nothing of errors.

    Words alone: the row of a perfect model is by latencies in one table, and makes it wider.
    """
    return [
        " ".join(line.split())
        for line in out.splitlines()
        if re.match(r"x86 \w+: error|  (family|SVR) |Best by", line)
    ]


def test_a_notebook_may_write_it_again(study: Path, run: Run) -> None:
    path = study.parent / "sds.csv"
    run("export", "-c", study, "--format", "csv", "--output", path)
    before = run("train", "--data", path, "--workload", "dlt", *OPTIONS)
    pd.read_csv(path).sample(frac=1, random_state=1).to_csv(path, index=False)
    assert before == run("train", "--data", path, "--workload", "dlt", *OPTIONS)
    assert "x86 slt" not in before


def test_what_was_trained_may_be_varied(study: Path, run: Run) -> None:
    path = study.parent / "sds.csv"
    run("export", "-c", study, "--format", "csv", "--output", path)
    words = ("train", "--data", path, "--workload", "slt", "--family", "svr", "--json")
    plain, other = run(*words), run(*words, "--seed", 5)
    assert json.loads(plain)["x86 slt"]["errors"] != json.loads(other)["x86 slt"]["errors"]


def test_stages_can_be_chosen_and_stdout_is_csv(study: Path, run: Run) -> None:
    lines = run("export", "-c", study, "--format", "csv", "--stage", "refine").splitlines()
    assert ",".join(lines[0].split(",")[:7]) == "study,campaign,arch,workload,stage,index,attempt"
    assert len(lines) == 1 + 2 * 4
    assert lines[1].startswith("mine,1,x86,slt,refine,0,0")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--format", "parquet"], "--format parquet needs --output FILE"),
        (["--format", "parquet", "-o", "a.csv"], "a.csv: .parquet is the ending of Parquet"),
        (["--format", "csv", "-o", "a.parquet"], "a.parquet: .parquet is the ending of Parquet"),
        (["--format", "csv", "--include", "x"], "--accept-costs don't go with"),
        (["--format", "csv", "--winner"], "--accept-costs don't go with"),
        (["--format", "csv", "--accept-costs"], "--accept-costs don't go with"),
        (["--format", "json", "--stage", "collect"], "--stage is for --format csv and parquet"),
        (["--format", "csv", "-o", "/dev/null/x"], "can't be written: Not a directory"),
    ],
)
def test_bad_usage_is_told(study: Path, run: Run, words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        run("export", "-c", study, *words)


def test_a_file_of_others_is_not_replaced(study: Path, run: Run) -> None:
    path = study.parent / "mine.csv"
    path.write_text("precious")
    words = ("export", "-c", study, "--format", "csv", "--output", path)
    with pytest.raises(UsageError, match="was not written by intop"):
        run(*words)
    assert path.read_text() == "precious"
    run(*words, "--force")
    run(*words)
    assert path.read_text().startswith("study,")


def test_a_campaign_without_trials_has_none_to_export(study: Path, run: Run) -> None:
    with opened(str(study.parent / "mine.db")) as store:
        store.begin("mine", seed=1, tool_version="0.1.0")
    with pytest.raises(ResultMissingError, match="nothing is measured yet"):
        run("export", "-c", study, "--format", "csv")


def edited(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"recipes"', '"others"', "is no schema of trials (it lacks a part of what intop export"),
        ('"fields"', "fields", "is no schema of trials (Expecting property name"),
        ('"folds": 2', '"folds": 200', "is no schema of trials (Value error, folds must be from"),
        ('"folds": 2', '"folds": "x"', "is no schema of trials (Input should be a valid integer"),
        ('"workload": "slt"', '"workload": "no"', "has no usable trials of collect and refine"),
        ('"column": "judged_ms"', '"column": "no"', "has no column 'no', which its schema names"),
        ('"folds": 2', '"folds": "2"', "is no schema of trials (Input should be a valid integer"),
        ('"is_lent": true', '"is_lent": "yes"', "is no schema of trials (Input should be a valid "),
        ('"enum": [', '"enum": [[1],', "is no schema of trials (Input should be a valid string"),
    ],
)
def test_a_broken_schema_is_told(study: Path, run: Run, old: str, new: str, message: str) -> None:
    path = study.parent / "sds.csv"
    run("export", "-c", study, "--format", "csv", "--output", path)
    edited(schema_of(path), old, new)
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        run("train", "--data", path)


def test_the_screening_that_models_learned_from_has_to_be_there(study: Path, run: Run) -> None:
    path = study.parent / "sds.csv"
    stages = ("--stage", "collect", "--stage", "refine")
    run("export", "-c", study, "--format", "csv", *stages, "--output", path)
    with pytest.raises(ConfigurationError, match=r"no usable trials of screen.*--stage screen"):
        run("train", "--data", path)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("judged_ms", "-1", "sds.csv:3: column 'judged_ms': must be a positive number"),
        ("judged_ms", "many", "sds.csv:3: column 'judged_ms': must be a positive number"),
        ("index", "x", "sds.csv:3: column 'index': must be a number"),
        (
            "judged_ms",
            "",
            "sds.csv:3: column 'judged_ms': must be a positive number, and is empty: cor",
        ),
        (
            "judged_ms",
            "1_000",
            "must be a positive number, and is '1_000', which has a mark between",
        ),
        (
            "judged_ms",
            "12,5",
            "sds.csv:3: column 'judged_ms': must be a positive number, and is '12,5',",
        ),
        ("index", "1.5", "sds.csv:3: column 'index': must be a whole number, and is '1.5'"),
        ("attempt", "-1", "sds.csv:3: column 'attempt': must be a number from 0 on, and is '-1'"),
        (
            "status",
            "OK",
            "sds.csv:3: column 'status': must be ok, overloaded, pruned, disturbed or",
        ),
        ("status", "", "sds.csv:3: column 'status': must be ok, overloaded, pruned, disturbed or"),
        ("role", "Design", "sds.csv:3: column 'role': must be baseline, design, proposal, repl"),
        ("stage", "Screen", "sds.csv:3: column 'stage': must be collect, refine or screen, and is"),
        ("workload", "SLT", "sds.csv:3: column 'workload': must be dlt or slt, and is 'SLT': corr"),
        ("arch", "X86", "sds.csv:3: column 'arch': must be x86, and is 'X86': correct it, or exp"),
        ("study", "other", "sds.csv:3: column 'study': must be mine, and is 'other': correct it"),
        ("campaign", "2", "sds.csv:3: column 'campaign': must be 1, and is '2': correct it, or"),
        (f"{RMEM}[max]", "", f"sds.csv:3: column '{RMEM}[max]': must be a number, and is empty"),
        (f"{RMEM}[max]", "None", f"sds.csv:3: column '{RMEM}[max]': must be a number, and is 'Non"),
        (f"{RMEM}[max]", "1,5", f"column '{RMEM}[max]': must be a number, and is '1,5', which has"),
        (f"{RMEM}[max]", "1.5", f"sds.csv:3: column '{RMEM}[max]': must be a whole number, and is"),
        (
            f"{RMEM}[max]",
            "1e12",
            f"sds.csv:3: column '{RMEM}[max]': must be from 16384 to 67108864",
        ),
        (f"{RMEM}[max]", "-1", f"sds.csv:3: column '{RMEM}[max]': must be from 16384 to 67108864"),
        (
            CONTROL,
            "BBR",
            f"sds.csv:3: column '{CONTROL}': must be reno, cubic or bbr, and is 'BBR'",
        ),
        (CONTROL, "None", f"sds.csv:3: column '{CONTROL}': must be reno, cubic or bbr, and is 'No"),
        (CONTROL, "", f"sds.csv:3: column '{CONTROL}': must be reno, cubic or bbr, and is empty"),
        (WINDOW, "yes", f"sds.csv:3: column '{WINDOW}': must be 0 or 1, and is 'yes': correct it"),
    ],
)
def test_a_broken_cell_is_told_with_its_line(
    study: Path, run: Run, column: str, value: str, message: str
) -> None:
    path = study.parent / "sds.csv"
    run("export", "-c", study, "--format", "csv", "--output", path)
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    table.loc[1, column] = value
    table.to_csv(path, index=False)
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        run("train", "--data", path)


def test_a_trial_that_stands_there_twice_is_told(study: Path, run: Run) -> None:
    path = study.parent / "sds.csv"
    run("export", "-c", study, "--format", "csv", "--output", path)
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    pd.concat([table, table.iloc[1:2]]).to_csv(path, index=False)
    message = r"sds\.csv:[0-9]+: column 'attempt': is the same attempt as line 3: take one out"
    with pytest.raises(ConfigurationError, match=message):
        run("train", "--data", path)


def test_trials_of_one_configuration_have_its_values(study: Path, run: Run) -> None:
    path = study.parent / "sds.csv"
    run("export", "-c", study, "--format", "csv", "--output", path)
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    names = table[(table["workload"] == "slt") & (table["stage"] == "collect")]["configuration"]
    first, last = names[names.duplicated(keep=False)].index[[0, -1]]
    assert names[first] == names[last]
    table.loc[last, "net.ipv4.tcp_fin_timeout"] = "17"
    table.to_csv(path, index=False)
    message = (
        r"tcp_fin_timeout': is of the same configuration as line [0-9]+: '17' here and '60' the"
    )
    with pytest.raises(ConfigurationError, match=message):
        run("train", "--data", path)


def test_a_column_that_stands_there_twice_is_told_by_its_numbers(study: Path, run: Run) -> None:
    path = study.parent / "sds.csv"
    run("export", "-c", study, "--format", "csv", "--output", path)
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    place = list(table.columns).index("judged_ms") + 1
    pd.concat([table, table["judged_ms"]], axis=1).to_csv(path, index=False)
    message = (
        f"sds.csv: columns {place} and {len(table.columns) + 1} are both called 'judged_ms': take "
    )
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        run("train", "--data", path)


def test_a_notebook_may_write_whole_numbers_as_fractions(study: Path, run: Run) -> None:
    path = study.parent / "sds.csv"
    run("export", "-c", study, "--format", "csv", "--output", path)
    before = run("train", "--data", path, *OPTIONS)
    table = pd.read_csv(path)
    for name in (WINDOW, "index", "campaign", "net.ipv4.tcp_fin_timeout"):
        table[name] = table[name].astype(float)
    table.to_csv(path, index=False)
    assert before == run("train", "--data", path, *OPTIONS)


def test_defaults_outside_of_the_space_are_read_again(
    study: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models learn from trials of the default, too, wherever it is."""
    defaults = DEFAULTS | {RMEM: "4096 131072 999999999"}
    monkeypatch.setattr(sys.modules[__name__], "DEFAULTS", defaults)
    with opened(str(study.parent / "mine.db")) as store:
        (campaign,) = store.campaigns()
        for workload in ("slt", "dlt"):
            subject = Subject(campaign=campaign, arch="x86", workload=workload)
            store.put(subject, probe_of(defaults))
    path = study.parent / "sds.csv"
    stored = run("train", "-c", study)
    run("export", "-c", study, "--format", "csv", "--output", path)
    recipes = json.loads(schema_of(path).read_text())["intop"]["recipes"]
    assert [recipe["outside"] for recipe in recipes] == [{f"{RMEM}[max]": ["999999999"]}] * 2
    assert errors(stored) == errors(run("train", "--data", path, *OPTIONS))


def test_an_export_of_an_earlier_intop_is_read(study: Path, run: Run) -> None:
    path = study.parent / "sds.csv"
    run("export", "-c", study, "--format", "csv", "--output", path)
    before = run("train", "--data", path, *OPTIONS)
    document = json.loads(schema_of(path).read_text())
    for field in document["fields"]:
        field.pop("constraints", None)
    for recipe in document["intop"]["recipes"]:
        del recipe["outside"]
    schema_of(path).write_text("\ufeff" + json.dumps(document))
    assert before == run("train", "--data", path, *OPTIONS)


@pytest.mark.parametrize("name", ["SDS.CSV.GZ", "sds.Parquet"])
def test_an_ending_in_capitals_says_the_same(study: Path, run: Run, name: str) -> None:
    path = study.parent / name
    form = "parquet" if "Parquet" in name else "csv"
    run("export", "-c", study, "--format", form, "--output", path)
    assert path.read_bytes().startswith(b"PAR1" if form == "parquet" else b"\x1f\x8b")
    assert "x86 slt" in run("train", "--data", path, *OPTIONS)


def test_without_a_schema_a_target_is_needed(study: Path, run: Run) -> None:
    path = study.parent / "sds.csv"
    run("export", "-c", study, "--format", "csv", "--output", path)
    with pytest.raises(UsageError, match=r"x86 slt, x86 dlt"):
        run("train", "--data", path, "--arch", "arm")
    schema_of(path).unlink()
    with pytest.raises(UsageError, match=r"--data needs --target COLUMN.*sds\.csv\.schema\.json"):
        run("train", "--data", path)
