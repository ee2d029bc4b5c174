"""What commands print and write of the recorded campaign is what they printed and wrote before.

Each output is compared with its file in tests/data/golden, byte by byte but for what `comparable`
leaves out. To make the files again, after a change that is meant:

    WRITE_GOLDEN=1 python -m pytest tests/cli/test_golden.py

Commands that fit models before they print (train, search, transfer) are left out: they take long,
and models differ between processors. The report shows what is stored of them.
"""

import lzma
import os
import re
import shutil
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

import pytest

from intop.config.study import load_study
from intop.store import opened
from test_recorded_campaign import DATA, unpacked

GOLDEN = DATA.parent / "golden"
PACKED = (".json", ".html", ".csv")
"""Such outputs are large, and are kept compressed."""
OUTPUTS = {
    "collect.txt": "collect",
    "compare.json": "compare x86 arm --json",
    "compare.md": "compare x86 arm --markdown",
    "compare.txt": "compare x86 arm",
    "compare-over-time.json": "compare --over-time --json",
    "compare-over-time.txt": "compare --over-time",
    "contest.txt": "contest",
    "explain.txt": "explain --arch x86",
    "export-ansible.txt": "export --arch x86 --format ansible",
    "export-sysctl.txt": "export --arch x86 --format sysctl",
    "export-tuned.txt": "export --arch x86 --format tuned --output OUTPUT",
    "export-winner.json": "export --arch x86 --format json --winner",
    "progress.json": "progress --json",
    "progress.txt": "progress",
    "refine.txt": "refine",
    "report.csv": "report --json --csv OUTPUT",
    "report.html": "report --output OUTPUT",
    "report.json": "report --json",
    "report.md": "report --output OUTPUT",
    "report-advice.csv": "report --advice --json --csv OUTPUT",
    "report-advice.html": "report --advice --output OUTPUT",
    "report-advice.json": "report --advice --json",
    "report-advice.md": "report --advice --output OUTPUT",
    "screen.txt": "screen --arch x86",
    "trials.csv": "export --format csv",
    "verify.txt": "verify",
}
"""The command of each golden file. OUTPUT is a file or a folder that the command writes."""
LEFT_OUT = (
    # The recorded campaign is of 22 November 2026. Another day is today.
    (re.compile(r"\b(?!2026-11-22)20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\+00:00|Z)?"), "TIME"),
    (re.compile(r"\bintop \d+\.\d+\.\d+\b"), "intop VERSION"),
    (re.compile(r'"tool_version": "[\d.]+"'), '"tool_version": "VERSION"'),
    (re.compile(r"(report made by intop[^\d\n]*)\d+\.\d+\.\d+"), r"\1VERSION"),
    # How long ago the last trial was.
    (re.compile(r'"silent_s": [\d.]+'), '"silent_s": AGE'),
)
DRAWING = re.compile(r"(<svg\b[^>]*>)(.*?)(</svg>)", re.DOTALL)
WORDS = re.compile(r"<text\b[^>]*>([^<]*)<")
LONG_NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d{8,}(?:e[-+]?\d+)?")
SHOWN_LINES = 12


def comparable(text: str) -> str:
    """Return an output without what may differ between two runs of the same code.

    These are the times and ages of today, the version, a figure's drawing except for its words, and
    what a number has beyond nine digits, which differs between processors.
    """
    for pattern, name in LEFT_OUT:
        text = pattern.sub(name, text)
    text = DRAWING.sub(lambda m: "\n".join((m[1], *WORDS.findall(m[2]), m[3])), text)
    return LONG_NUMBER.sub(lambda m: f"{float(m[0]):.9g}", text)


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded study with its finished store, brought up to date."""
    folder = tmp_path_factory.mktemp("golden")
    for path in DATA.glob("*.toml"):
        (folder / path.name).write_bytes(path.read_bytes())
    store = unpacked("finished", folder).rename(folder / load_study(DATA / "intop.toml").store)
    with opened(str(store)):
        pass
    return folder


@pytest.mark.usefixtures("a_narrow_file")
@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_of_the_recorded_campaign_is_the_golden_one(
    name: str,
    folder: Path,
    tmp_path: Path,
    call: Callable[..., tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A copy, since a stage stores its result again.
    monkeypatch.chdir(shutil.copytree(folder, tmp_path / "study"))
    output = tmp_path / name
    words = [str(output) if word == "OUTPUT" else word for word in OUTPUTS[name].split()]
    code, printed, errors = call(*words)
    assert code in (0, 3), errors  # 3: arm has no gain
    actual = comparable(written(output) if output.exists() else printed)
    if os.environ.get("WRITE_GOLDEN"):
        write(name, actual)
    problem = first_difference(read(name), actual)
    if problem:
        output = tmp_path / f"actual-{name}"
        output.write_bytes(actual.encode())
        pytest.fail(f"{name} differs {problem}\nAll of the actual one: {output}")


def test_each_golden_file_belongs_to_an_output() -> None:
    assert sorted(place(name) for name in OUTPUTS) == sorted(GOLDEN.iterdir())


def test_a_difference_of_one_byte_is_seen() -> None:
    golden = read("report.md")
    assert first_difference(golden, golden) == ""
    for changed in (golden[:-1], golden + "\n", golden.replace("XGBoost", "XGBoOst", 1)):
        assert first_difference(golden, changed) != ""


def test_only_times_versions_drawings_and_late_digits_are_left_out() -> None:
    made = comparable(
        "made 2027-01-02T03:04:05+00:00 by intop 0.2.7, begun 2026-11-22 20:56:30\n"
        '<svg role="img"><path d="M 1 2"/><text x="1">0.01</text><text x="2">P99</text></svg>\n'
        "1.2345678912345, 0.75, 1.5e-05, 0x1.12345678912"
    )
    assert made == (
        "made TIME by intop VERSION, begun 2026-11-22 20:56:30\n"
        '<svg role="img">\n0.01\nP99\n</svg>\n'
        "1.23456789, 0.75, 1.5e-05, 0x1.12345678912"
    )


def written(output: Path) -> str:
    """Return the text of a file, or of all files of a folder with their names."""
    if output.is_file():
        return output.read_bytes().decode()
    files = sorted(path for path in output.rglob("*") if path.is_file())
    return "".join(f"== {p.relative_to(output)}\n{p.read_bytes().decode()}" for p in files)


def place(name: str) -> Path:
    return GOLDEN / (f"{name}.xz" if name.endswith(PACKED) else name)


def read(name: str) -> str:
    content = place(name).read_bytes()
    return (lzma.decompress(content) if name.endswith(PACKED) else content).decode()


def write(name: str, text: str) -> None:
    content = text.encode()
    packed = lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)
    place(name).write_bytes(packed if name.endswith(PACKED) else content)


def first_difference(expected: str, actual: str) -> str:
    """Return where two texts differ first, with the lines of both from there; else nothing."""
    if expected == actual:
        return ""
    sides = [text.splitlines(keepends=True) for text in (expected, actual)]
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*sides, strict=False)))
    shown = [map(repr, lines[same : same + SHOWN_LINES]) for lines in sides]
    golden, new = ("\n".join(lines) for lines in shown)
    return f"from line {same + 1} on.\nGolden:\n{golden}\nActual:\n{new}"
