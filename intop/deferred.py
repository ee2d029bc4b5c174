"""Modules that are imported when they are first used: most commands need few of them."""

from importlib import import_module
from typing import Any


class Deferred:
    """A module that is imported when one of its attributes is first asked for.

    A module names it `np`, say, below `else` of `if TYPE_CHECKING: import numpy as np`.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value
