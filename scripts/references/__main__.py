"""`make docs`: write docs/commands.md, docs/parameters.md and the picture of the pipeline."""

from pathlib import Path

from intop.report.figures.pipeline import pipeline
from scripts.references import commands, parameters

ROOT = Path(__file__).parents[2]

for name, text in (
    ("commands.md", commands.document()),
    ("parameters.md", parameters.document(ROOT / "configs" / "parameters.toml")),
    ("images/pipeline.svg", pipeline().svg()),
):
    (ROOT / "docs" / name).write_text(text)
    print(f"written: docs/{name}")
