"""Texts of one form, as an annotation of a field."""

import re

from annotated_types import Predicate


def matching(pattern: str, form: str) -> Predicate:
    """Return an annotation for texts that match all of a pattern; `form` says what they must be."""

    def is_match(text: str) -> bool:
        if re.fullmatch(pattern, text) is None:
            raise ValueError(f"must be {form}")
        return True

    return Predicate(is_match)
