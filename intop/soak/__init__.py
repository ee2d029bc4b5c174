"""Soak: hours of load on what is applied, in search of leaks and drifts."""

from intop.features import Feature

FEATURE = Feature(
    own_stages={"soak": "intop.soak.stage:SoakApplied"},
    results={"soak": "intop.domain.soak:Soak"},
    commands={
        "soak": "intop.soak.command:command",
    },
    figures={"intop.domain.soak:Soak": ("intop.soak.figure:soak",)},
)
