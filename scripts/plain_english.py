"""Find sentences that are no plain English, in pages, help and docstrings: part of `make check`.

    python -m scripts.plain_english

CONTRIBUTING.md has the rules. A sentence that needs such words all the same stands in EXCEPTIONS.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
LEFT_OUT = {
    *("commands.md", "compare.md", "counters.md", "nginx.md", "parameters.md", "study.md"),
    *("trials.md", "faults.md"),
}
"""Pages that are generated, or only tables."""
LONGEST = 30
"""Words of a page's sentence. 20 is the aim, and lists of names need more."""

IN_PAGES = {
    "that of, those of": r"\b(?:that|those) of (?!course)",
}
"""Further rules of pages. In docstrings a formula's "that of" is often the shortest."""
RULES = {
    "begins with Of, Taken, Whose or From what": r"^(?:Of (?!course)|Taken |Whose |From what )",
    "What without a noun": r"^What (?:is|are|was|were|has|have|does|do|no|a|an|the|it|they)\b",
    "is told": r"\b(?:is|are|was|were|be) told\b",
    "anew": r"\banew\b",
    "give back, for restore": r"\bg[ia]v(?:e|en|es|ing) (?:it |them |a host |the hosts? )?back\b",
    "lay beside, for compare": r"\b[Ll](?:ay|aid) (?:next to|beside|side by side)\b",
}
EXCEPTIONS: frozenset[str] = frozenset()
"""Sentences, from their first word to the tenth."""

_FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`*\"'(])")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, whose lines are joined by paragraph."""
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\.) )", text):
        joined = " ".join(paragraph.split()).lstrip("-*#> ")
        yield from (s.strip(' "') for s in _SENTENCE.split(joined) if s)


def prose(page: Path) -> str:
    """Return a page without code, tables, headings and addresses."""
    text = _LINK.sub(r"\1", _FENCE.sub("", page.read_text()))
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("|", "<!--", "#"))]
    return _CODE.sub("CODE", "\n".join(lines))


def docstrings(source: Path) -> Iterator[tuple[int, str]]:
    """Yield the first sentence of each docstring, and of the texts below fields."""
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str) and text.strip():
                yield node.lineno, next(sentences(text), "")


def broken(sentence: str, rules: Mapping[str, str] = RULES) -> Iterator[str]:
    """Yield the rules that a sentence breaks."""
    if " ".join(sentence.split()[:10]) not in EXCEPTIONS:
        yield from (rule for rule, pattern in rules.items() if re.search(pattern, sentence))


def findings() -> Iterator[str]:
    """Yield a line for each sentence that breaks a rule."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    for page in sorted(page for page in pages if page.name not in LEFT_OUT):
        for sentence in sentences(prose(page)):
            rules = list(broken(sentence, RULES | IN_PAGES))
            if (count := len(sentence.split())) > LONGEST:
                rules.append(f"{count} words")
            yield from (f"{page.relative_to(ROOT)}: {rule}: {sentence[:100]}" for rule in rules)
    for source in sorted((ROOT / "intop").rglob("*.py")):
        for line, sentence in docstrings(source):
            place = f"{source.relative_to(ROOT)}:{line}"
            yield from (f"{place}: {rule}: {sentence[:100]}" for rule in broken(sentence))


if __name__ == "__main__":
    lines = list(findings())
    print("\n".join(lines))
    sys.exit(f"{len(lines)} sentences are no plain English" if lines else 0)
