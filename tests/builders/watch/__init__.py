"""Watch: a feature that intop lacks. A test registers it by one line, as a new one would be."""

from intop.features import Feature

FEATURE = Feature(
    stages={"watch": "builders.watch.stage:Watch"},
    results={"watched": "builders.watch.stage:Watched"},
    commands={"watch": "builders.watch.command:command"},
    figures={"builders.watch.stage:Watched": ("builders.watch.view:figure",)},
)
