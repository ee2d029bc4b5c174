"""The files that come with intop: configurations, the catalogue and the Lua scripts."""

from pathlib import Path

_PACKAGE = Path(__file__).parent


def shipped(name: str) -> Path:
    """The folder `configs` or `lua`: inside an installed package, or beside it in a checkout."""
    installed = _PACKAGE / "shipped" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
