"""Explain: the changes that a winner's gain is made of, and the mechanisms behind it."""

from intop.features import Feature

FEATURE = Feature(
    stages={
        "explain": "intop.explain.stage:Explain",
        "causes": "intop.explain.causes.stage:Mediate",
    },
    results={
        "explanation": "intop.domain.explanation:Explanation",
        "mediation": "intop.domain.mediation:Mediation",
        "promised": "intop.domain.explanation:Promised",
    },
    commands=("intop.explain.command:command", "intop.explain.causes.command:command"),
    figures={
        "intop.domain.explanation:Explanation": (
            "intop.explain.figure:contributions",
            "intop.explain.figure:dependence",
        ),
    },
)
