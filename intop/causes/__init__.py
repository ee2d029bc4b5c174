"""Causes: what is left of a gain without each mechanism that the verdict names."""

from intop.features import Feature

FEATURE = Feature(
    own_stages={"causes": "intop.causes.stage:Mediate"},
    results={"mediation": "intop.domain.mediation:Mediation"},
    commands={
        "causes": "intop.causes.command:command",
    },
)
