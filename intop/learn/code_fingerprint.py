"""The code fingerprint of the models: what makes them, ours and of the libraries."""

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

LIBRARIES = ("catboost", "lightgbm", "numpy", "optuna", "scikit-learn", "scipy", "xgboost-cpu")


@cache
def code_fingerprint() -> str:
    """A name that changes with the source of this package and the versions of its libraries.

    A number of our own would be forgotten: between two releases the models change often.
    """
    known = hashlib.sha256(repr([(name, version(name)) for name in LIBRARIES]).encode())
    folder = Path(__file__).parent
    sources = [*folder.rglob("*.py"), folder.parent / "domain" / "encoding.py"]
    for source in sorted(sources):
        known.update(source.read_bytes())
    return known.hexdigest()
