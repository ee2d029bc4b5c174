"""Causes: what is left of a gain without each mechanism that the verdict names."""

from intop.features import Feature

FEATURE = Feature(
    stages={"causes": "intop.causes.stage:Mediate"},
    results={"mediation": "intop.domain.mediation:Mediation"},
    commands=("intop.causes.command:command",),
)
