"""The path of a study's file without --config. Light, since shell completion imports it."""

from pathlib import Path


def default_path() -> Path:
    """Return the path of this folder's study, which may not be there."""
    return Path("intop.toml")
