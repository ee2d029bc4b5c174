"""A password, kept out of everything that is shown or stored."""

from typing import NoReturn


class Secret:
    """A text that only `reveal` gives away: no repr, no message, no traceback, no pickle."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the one place that sends it."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(...)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is neither copied nor stored")
