"""Saved models as text."""

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from intop.domain.artefact import Manifest
from intop.report.text import bold, new_table


def manifest(name: str, found: Manifest) -> RenderableType:
    """One artefact: where it comes from, and its models with their held-out errors."""
    origin, conditions = found.origin, found.origin.conditions
    unit = f" in {origin.unit}" if origin.unit else ""
    text = (
        f"predict log {origin.target}{unit} from {len(origin.variables)} variables (space "
        f"{found.space[:12]}), fitted to {origin.trials} trials of {origin.configurations} "
        f"configurations (data {origin.samples[:12]})\n"
        f"study {origin.study} of {origin.campaign}, measured on {conditions.cpu} "
        f"({conditions.machine}, kernel {conditions.kernel}) at {conditions.rate_rps:g} "
        f"requests/s\n"
        f"saved at {found.saved_at} with {_listed(found.versions)}"
    )
    table = new_table(
        ("family", "left"),
        ("MAPE", "right"),
        ("R² of the logarithm", "right"),
        ("rank correlation", "right"),
        ("and with", "left"),
        ("SHA-256", "left"),
    )
    for model in found.models:
        table.add_row(
            model.family,
            f"{model.error.mape:.0f} %",
            f"{model.error.r2:.2f}",
            f"{model.error.spearman:.2f}",
            _listed({k: v for k, v in model.libraries.items() if k not in found.versions}),
            model.sha256[:12],
        )
    heading = bold(f"{name}: models of {origin.arch} {origin.workload}")
    return Group(heading, Text(text), table, "")


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{library} {version}" for library, version in versions.items())
