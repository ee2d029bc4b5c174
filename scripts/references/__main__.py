"""`make docs`: write the generated documents, and the picture of the pipeline."""

from pathlib import Path

from scripts.references import commands, counters, nginx, parameters, study, trials
from scripts.references.pipeline import pipeline, steps

ROOT = Path(__file__).parents[2]

for name, text in (
    ("commands.md", commands.document()),
    ("counters.md", counters.document(ROOT / "configs" / "counters.toml")),
    ("parameters.md", parameters.document(ROOT / "configs" / "parameters.toml")),
    ("nginx.md", nginx.document(ROOT / "configs" / "nginx.toml")),
    ("study.md", study.document()),
    ("trials.md", trials.document()),
    ("images/pipeline.svg", pipeline(steps()).svg()),
):
    (ROOT / "docs" / name).write_text(text)
    print(f"written: docs/{name}")
