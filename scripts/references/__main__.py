"""`make docs`: write docs/commands.md and docs/parameters.md anew."""

from pathlib import Path

from scripts.references import commands, parameters

ROOT = Path(__file__).parents[2]

for name, text in (
    ("commands.md", commands.document()),
    ("parameters.md", parameters.document(ROOT / "configs" / "parameters.toml")),
):
    (ROOT / "docs" / name).write_text(text)
    print(f"written: docs/{name}")
