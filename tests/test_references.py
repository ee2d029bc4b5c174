"""The reference pages in docs/ are generated from the code, and must be up to date."""

from dataclasses import replace
from pathlib import Path

import click

from builders.trials import METRICS, trial
from intop.cli import cli
from intop.command.options import Command, examples
from intop.config.catalogue import load_catalogue
from intop.config.counters import load_counters
from intop.domain.configuration import Configuration
from intop.domain.counters import HostCounters
from intop.frame import Part, fields_of
from scripts.references import commands, counters, nginx, parameters, study, trials
from scripts.references.pipeline import pipeline, steps

ROOT = Path(__file__).parents[1]
CATALOGUE = ROOT / "configs" / "parameters.toml"


def test_the_commands_are_as_the_document_has_them() -> None:
    assert commands.document() == (ROOT / "docs" / "commands.md").read_text(), "run: make docs"


def test_the_catalogue_is_as_the_document_has_it() -> None:
    text = (ROOT / "docs" / "parameters.md").read_text()
    assert parameters.document(CATALOGUE) == text, "run: make docs"


def test_the_counters_are_as_the_document_has_them() -> None:
    text = (ROOT / "docs" / "counters.md").read_text()
    assert counters.document(ROOT / "configs" / "counters.toml") == text, "run: make docs"


def test_the_directives_are_as_the_document_has_them() -> None:
    text = (ROOT / "docs" / "nginx.md").read_text()
    assert nginx.document(ROOT / "configs" / "nginx.toml") == text, "run: make docs"


def test_the_columns_of_trials_are_as_the_document_has_them() -> None:
    assert trials.document() == (ROOT / "docs" / "trials.md").read_text(), "run: make docs"


def test_the_keys_of_a_study_are_as_the_document_has_them() -> None:
    assert study.document() == (ROOT / "docs" / "study.md").read_text(), "run: make docs"


def test_every_key_of_a_study_has_a_value_and_most_have_a_meaning() -> None:
    rows = [line.split(" | ") for line in study.document().splitlines() if line.startswith("| `")]
    assert len(rows) > 120
    assert [row[0] for row in rows if not row[1].strip()] == []
    without = [row[0] for row in rows if not row[3].strip(" |")]
    assert len(without) < len(rows) / 4, without


def test_the_picture_of_the_pipeline_is_as_it_is_drawn() -> None:
    picture = (ROOT / "docs" / "images" / "pipeline.svg").read_text()
    assert pipeline(steps()).svg() == picture, "run: make docs"
    assert {step.command for step in steps()} < set(cli.commands)


def test_every_option_of_every_command_has_its_line() -> None:
    text = commands.document()
    for name, command in cli.commands.items():
        section = text.partition(f"\n## intop {name}\n")[2].partition("\n## ")[0]
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert f"{parameter.opts[0]}" in section, (name, parameter.opts)


def test_a_command_as_it_is_shown() -> None:
    @click.group()
    def program() -> None:
        """All."""

    @program.command(cls=Command, epilog=examples("intop do --mode a    first") + "\n\nMore.")
    @click.option("--mode", type=click.Choice(["a", "b"]), help="Which.  [default: a]")
    @click.option("--times", type=click.IntRange(min=2), help="How often.  [default: 7]")
    @click.argument("what")
    def do(mode: str, times: int, what: str) -> None:
        """Do it.

        With a
        second paragraph.
        """

    shown = commands.document(program).partition("## intop do\n")[2]
    expected = """
`intop do [OPTIONS] WHAT`

Do it.

With a second paragraph.

| option | what it does | default |
| --- | --- | --- |
| `--mode [a\\|b]` | Which. | a |
| `--times INTEGER RANGE` | How often. [x>=2] | 7 |

```
intop do --mode a    first
```

More.
"""
    assert shown == expected


def test_every_parameter_stands_below_its_group() -> None:
    text = parameters.document(CATALOGUE)
    keys = [p.key for p in load_catalogue(CATALOGUE).parameters]
    places = [text.index(f"| `{key}` |") for key in keys]
    assert sorted(places) == places
    assert len(keys) == len(set(places))
    group = text.partition("## Page cache and writeback")[2].partition("\n## ")[0]
    assert "| `vm.dirty_ratio` |" in group


def test_every_column_of_trials_has_its_row() -> None:
    counted = HostCounters(at_s=(1.0,), growth={"TcpExt.TCPTimeouts": (2,)})
    measured = replace(
        trial(Configuration({"a.key": "1"})), metrics={"lb": METRICS}, counters={"lb": counted}
    )
    part = Part(
        study="lab",
        campaign=1,
        arch="x86",
        workload="slt",
        defaults={},
        trials=[measured],
        modelled={("collect", 0): 1.0},
    )
    explained = load_counters(ROOT / "configs" / "counters.toml")
    columns = [field.name for field in fields_of([part], {}, explained)]
    shown = [cells[0].strip("`") for cells in trials.rows()]
    generic = {"a.key": "KEY`, `KEY[component]", "lb.TcpExt.TCPTimeouts": "HOST.COUNTER"}
    assert shown == [generic.get(c, c.replace("lb.", "HOST.")) for c in columns]
