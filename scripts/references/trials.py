"""docs/trials.md: the columns of trials as a table, as `intop.frame` defines them."""

from collections.abc import Iterable
from dataclasses import replace

from intop.domain.table import Field
from intop.frame import CONDITIONS, ERRORS, METRICS, MODELLED, RESULTS, TRIAL
from scripts.references.markdown import MADE, table

COLUMNS = ["column", "unit", "meaning"]
PARAMETER = [
    "`KEY`, `KEY[component]`",
    "as in [parameters](parameters.md)",
    "value of each parameter that any of the trials set; the host's default where this one did not",
]
COUNTER = [
    "`HOST.COUNTER`",
    "",
    "with `--counters`: each of the [kernel's counters](counters.md) that was not 0 in all trials",
]
HEAD = """\
`intop export` writes all trials of a campaign as a table:

```
intop export --format csv --output trials.csv.gz      all trials
intop export --format csv --stage collect --output collected.csv    of some stages
intop export --format parquet --output trials.parquet
intop export --format csv --counters --output trials.csv                  with the kernel's counters
intop train --data trials.csv                             the errors of intop train
```

Parquet needs pyarrow: `pip install 'intop[parquet]'`.

In Python, `intop.trials("intop.db")` returns the same table as a pandas data frame, over all
studies and campaigns of the store. The arguments `study`, `campaign`, `arch` and `workload`
select some of them.

## Rows

Each row is a trial. A repeated attempt has a separate row. Failed trials have no `p99_ms`;
disturbed trials have `status` disturbed. To use only valid trials, take the last attempt at each
place of a plan (`stage`, `index`), if its status is `ok`, `overloaded` or `pruned`. The file
contains the trials whatever the verdict was, and is written completely or not at all.
In CSV, a text that a spreadsheet would take for a formula begins with an apostrophe.
`intop train --data` reads it without.

## Train again from the file

`FILE.schema.json` beside the table describes each column with its unit (a Table Schema of
Frictionless Data). It also has the settings of `intop train` for each architecture and workload,
from the current study: parameters with ranges, folds, repeats, tries, times and seed.
`intop train --data FILE` therefore needs no other option and prints exactly the errors of
`intop train`, with one exception: if `tuning_timeout_s` ends a tuning search, the result depends on
the speed of the machine. The noise ceiling differs: the table has no histograms, so replicates
alone tell the noise. The file needs the stages that models learn from: screen, collect and refine.
If you change a table in a notebook and save it under another name, copy the schema to that name as
well. Each cell that models learn from must be one that the export could have: a value of its range
or list of choices, a known status and role, a place of the plan. `train` names the line and column
of any other, and learns nothing.

## Columns
"""


def document() -> str:
    """The whole document."""
    source = MADE.format(source="`intop/frame.py` or `scripts/references/trials.py`")
    return "\n".join(["# Trials as a table\n", source, HEAD, table(COLUMNS, rows())])


def rows() -> list[list[str]]:
    """A row for each column of the table, in the order of the table."""
    of_hosts = (replace(metric, name=f"HOST.{metric.name}") for metric in METRICS)
    return [
        *_rows((*TRIAL, *CONDITIONS)),
        PARAMETER,
        *_rows((*RESULTS, MODELLED, *ERRORS, *of_hosts)),
        COUNTER,
    ]


def _rows(fields: Iterable[Field]) -> list[list[str]]:
    return [[f"`{field.name}`", field.unit, field.meaning] for field in fields]
