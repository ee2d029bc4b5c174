"""Explain: the changes that a winner's gain is made of."""

from intop.features import Feature

FEATURE = Feature(
    stages={"explain": "intop.explain.stage:Explain"},
    results={
        "explanation": "intop.domain.explanation:Explanation",
        "promised": "intop.domain.explanation:Promised",
    },
    commands={
        "explain": "intop.explain.command:command",
    },
    figures={
        "intop.domain.explanation:Explanation": (
            "intop.explain.figure:contributions",
            "intop.explain.figure:dependence",
        ),
    },
)
