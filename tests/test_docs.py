"""README.md, docs/ and benchmarks/results/: commands can be typed, links and files exist."""

import gzip
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import pytest

from benchmarks.__main__ import QUESTIONS
from builders import results as findings
from builders.trials import CONDITIONS as MEASURED_UNDER
from builders.trials import trial
from intop import artefacts
from intop.cli import cli
from intop.config.catalogue import load_catalogue
from intop.config.study import load_study
from intop.domain.configuration import Configuration
from intop.domain.encoding import Variable
from intop.domain.table import Recipe, schema_of
from intop.frame import Part, fields_of, frame, schema, to_csv
from scripts.references.markdown import anchor

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCUMENTS = [README, *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [*DOCUMENTS, *sorted((ROOT / "benchmarks" / "results").glob("*.md"))]
IDS = [str(path.relative_to(ROOT)) for path in PAGES]

FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r" *```(sh)?\n")
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
TOP = r"(?:\.ci|benchmarks|configs|docs|intop|lua|scripts|tests)"
OWN_PATH = re.compile(rf"{TOP}/[\w./*-]*")
PART_PATH = re.compile(r"[a-z]+/[\w/]+\.(?:py|sh)")
"""Of a module, as documents call it: below intop/ or tests/."""
DELETED = re.compile(r"`git show [0-9a-f]{8}:(benchmarks/\w+\.py)`")
"""A script that a page still names, with a commit that has it."""
OPERATORS = {"&&", "||", ";", "|"}
SAFE = {"completion", "models"}
"""Commands that need no cluster and no store."""
FITTED = ["train", "--data", "runs.csv", "--target", "p95_ms"]
"""The one call that fits models. Of the others the tables are read: fits are tested elsewhere."""


def fences(path: Path) -> Iterator[tuple[int, str]]:
    """Each line of a shell within a fence, with its number; continued lines are joined."""
    text = path.read_text()
    for fence in FENCE.finditer(text):
        if not SHELL.match(fence[0]):
            continue
        first = text.count("\n", 0, fence.start()) + 2
        lines = fence[0].splitlines()[1:-1]
        number = 0
        while number < len(lines):
            start, line = number, lines[number]
            while line.endswith("\\") and number + 1 < len(lines):
                number += 1
                line = line[:-1] + lines[number]
            yield first + start, line.strip()
            number += 1


def prose(path: Path) -> str:
    return FENCE.sub("", path.read_text())


def typed(line: str) -> Iterator[list[str]]:
    """The words of each intop that a line calls; remarks follow two blanks, or #."""
    words = shlex.shlex(re.split(r"\s{2,}", line)[0], posix=True, punctuation_chars=True)
    words.whitespace_split = True
    result: list[list[str]] = [[]]
    for word in words:
        if word in OPERATORS:
            result.append([])
        else:
            result[-1].append(word)
    for call in result:
        if call[:1] == ["intop"]:
            yield call[1 : call.index(">")] if ">" in call else call[1:]


def calls(path: Path) -> list[tuple[int, list[str]]]:
    """Every call of intop that a document shows, with its line."""
    lines = [(number, line.removeprefix("$ ")) for number, line in fences(path)]
    return [(n, words) for n, line in lines if line.startswith("intop ") for words in typed(line)]


@pytest.fixture
def harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that are parsed and do nothing."""

    def silence(group: click.Group) -> None:
        for command in group.commands.values():
            if isinstance(command, click.Group):
                silence(command)
            else:
                monkeypatch.setattr(command, "callback", lambda **_: None)

    silence(cli)


@pytest.mark.usefixtures("harmless")
@pytest.mark.parametrize("path", PAGES, ids=IDS)
def test_what_is_to_be_typed_is_understood(path: Path) -> None:
    wrong = []
    for number, words in calls(path):
        try:
            cli(list(words), standalone_mode=False)
        except click.ClickException as error:
            wrong.append(f"{path.name}:{number}: intop {shlex.join(words)}: {error.message}")
    assert wrong == []


@pytest.mark.usefixtures("harmless")
@pytest.mark.parametrize("line", ["intop nosuch", "intop tune --nosuch", "intop collect --arch z"])
def test_what_is_not_understood_is_seen(line: str) -> None:
    (words,) = typed(line)
    with pytest.raises(click.ClickException):
        cli(words, standalone_mode=False)


def test_there_is_something_to_be_typed() -> None:
    for name in ("README.md", "tutorial.md", "how-to-x86-and-arm.md", "commands.md"):
        (path,) = (path for path in DOCUMENTS if path.name == name)
        assert len(calls(path)) >= 5, name
    line = "intop lab up && intop tune --arch x86 > out.txt    all of it"
    assert list(typed(line)) == [["lab", "up"], ["tune", "--arch", "x86"]]
    assert list(typed("intop status # and more")) == [["status"]]


TABLE = ["run,step,worker,a,b,c,d,e,f,g,h,i,p95_ms,mean_ms,judged_ms"] + [
    f"r{n // 4},{n % 4},w{n % 2},{n},{n * n % 7},{n % 3},{n % 5},{n * 3 % 11},1,2,3,4,"
    f"{10 + n + n % 3},{5 + n},{1000000 if n == 9 else 20 + n}"
    for n in range(24)
]
"""A table for every `intop train --data` that is shown: p95_ms is its 13th column."""


ORIGIN = replace(findings.ORIGIN, conditions=MEASURED_UNDER)
"""Of models that were saved, for `intop models`."""


def exported(path: Path) -> None:
    """Trials as `intop export` writes them."""
    key = "net.core.somaxconn"
    made = [trial(Configuration({key: str(n)}), 1000 + n * n, index=n) for n in range(12)]
    of = {"study": "lab", "campaign": 1, "arch": "x86", "workload": "slt"}
    part = Part(**of, defaults={key: "4096"}, trials=made)
    model = {"column": "judged_ms", "target": "P99", "unit": "ms", "level": 0.95}
    fit = {"folds": 4, "repeats": 1, "trials": 1, "timeout_s": None, "seed": 1}
    recipe = Recipe(variables=(Variable(name=key, key=key, low=0, high=11),), **of, **model, **fit)
    path.write_bytes(to_csv(frame([part], {})))
    schema_of(path).write_bytes(schema(fields_of([part], {}), [recipe]))


def needs_no_cluster(words: list[str]) -> bool:
    return "--help" in words or "--version" in words or words[0] in SAFE or "--data" in words


def test_what_needs_no_cluster_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")
    text = "\n".join(TABLE)
    (tmp_path / "runs.csv").write_text(text)
    (tmp_path / "runs.csv.gz").write_bytes(gzip.compress(text.encode()))
    exported(tmp_path / "trials.csv")
    (tmp_path / "models").mkdir()
    artefacts.save(tmp_path / "models" / "x86-slt.zip", ORIGIN, [])
    ran = set()
    for path in DOCUMENTS:
        for _, words in calls(path):
            if not needs_no_cluster(words) or tuple(words) in ran:
                continue
            ran.add(tuple(words))
            # As shown, but with as little to fit as there can be.
            quick = (
                ["--family", "svr", "--trials", "1", "--folds", "2"] if "--data" in words else []
            )
            with monkeypatch.context() as patch:
                if "--data" in words and words != FITTED:
                    patch.setattr("intop.learn.tuning.train_all", lambda *a, **k: [])
                assert cli([*words, *quick], standalone_mode=False) in (0, None), words
            assert capsys.readouterr().out, words
    assert {"--help", *SAFE} <= {word for words in ran for word in words}
    assert tuple(FITTED) in ran


def test_studies_that_are_shown_can_be_read(tmp_path: Path) -> None:
    shown = 0
    for path in DOCUMENTS:
        for fence in FENCE.findall(path.read_text()):
            if "[study]" in fence and "[workload." in fence:
                shown += 1
                (tmp_path / "intop.toml").write_text("\n".join(fence.splitlines()[1:-1]))
                load_study(tmp_path / "intop.toml")
    assert shown >= 2


@pytest.mark.parametrize("path", PAGES, ids=IDS)
def test_links_lead_somewhere(path: Path) -> None:
    wrong = []
    for link in LINK.findall(prose(path)):
        if re.match(r"https?://", link):
            continue
        name, _, place = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not (target.exists() and target.is_relative_to(ROOT)):
            wrong.append(f"{link}: no such file")
        elif place and place not in anchors(target):
            wrong.append(f"{link}: no such heading")
    assert wrong == []


def anchors(path: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    result: list[str] = []
    for title in titles:
        first = anchor(title)
        twice = result.count(first)
        result.append(f"{first}-{twice}" if twice else first)
    return set(result)


@pytest.mark.parametrize("path", PAGES, ids=IDS)
def test_files_that_are_named_exist(path: Path) -> None:
    words = [word.partition("::")[0] for code in CODE.findall(prose(path)) for word in code.split()]
    words += [word for _, line in fences(path) for word in line.split()]
    lines = "\n".join([prose(path), *(line for _, line in fences(path))])
    modules = re.findall(r"python -m ((?:benchmarks|scripts)[\w.]*)", lines)
    deleted = set(DELETED.findall(lines))
    words = [word for word in words if word not in deleted]
    modules = [name for name in modules if f"{name.replace('.', '/')}.py" not in deleted]
    asked = re.findall(r"python -m benchmarks ([a-z-]+)", lines)
    wrong = [f"{name}: is no question" for name in asked if name not in QUESTIONS]
    wrong += [f"{name}: is no deleted script" for name in deleted if (ROOT / name).exists()]
    wrong += [word for word in words if OWN_PATH.fullmatch(word) and not any(ROOT.glob(word))]
    wrong += [
        word
        for word in words
        if PART_PATH.fullmatch(word)
        and not any((ROOT / top / word).is_file() for top in ("", "intop", "tests"))
    ]
    wrong += [
        name
        for name in modules
        if not ((at := ROOT / name.replace(".", "/")).is_dir() or at.with_suffix(".py").is_file())
    ]
    assert wrong == []


@pytest.mark.parametrize("path", PAGES, ids=IDS)
def test_what_can_be_made_is_in_the_makefile(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    codes = [*CODE.findall(prose(path)), *(line for _, line in fences(path))]
    named = {result[1] for code in codes if (result := re.match(r"make ([a-z][a-z-]*)", code))}
    assert named - targets == set()


def test_the_readme_leads_to_every_document() -> None:
    text = README.read_text()
    assert [path.name for path in DOCUMENTS[1:] if f"(docs/{path.name})" not in text] == []


def test_the_size_of_the_catalogue_is_told_as_it_is() -> None:
    count = len(load_catalogue(ROOT / "configs" / "parameters.toml").parameters)
    assert {str(count)} == set(re.findall(r"catalogue of (\d+)", README.read_text()))
