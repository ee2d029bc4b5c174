"""The path of a study's file without --config. Light, since shell completion imports it."""

from pathlib import Path

from intop.resources import shipped


def default_path() -> Path:
    """The configuration of this folder, or else the embedded lab's."""
    own = Path("intop.toml")
    return own if own.is_file() else shipped("configs") / "lab.toml"
