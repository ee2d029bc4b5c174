"""Where a study's file is when nobody says so. Imports nothing heavy: shell completion asks it."""

from pathlib import Path

from intop.resources import shipped


def default_path() -> Path:
    """The configuration of this folder, or else the embedded lab's."""
    own = Path("intop.toml")
    return own if own.is_file() else shipped("configs") / "lab.toml"
