"""Saved models as a document."""

from collections.abc import Mapping

from intop.domain.artefact import Manifest
from intop.report.document.columns import Column, numbers, texts
from intop.report.document.model import Section, tabled


def manifest(name: str, found: Manifest) -> Section:
    """One artefact: where it comes from, and its models with their held-out errors."""
    origin, conditions = found.origin, found.origin.conditions
    unit = f" in {origin.unit}" if origin.unit else ""
    notes = (
        (
            f"predict log {origin.target}{unit} from {len(origin.variables)} variables (space "
            f"{found.space[:12]}), fitted to {origin.trials} trials of {origin.configurations} "
            f"configurations (data {origin.samples[:12]})"
        ),
        (
            f"study {origin.study} of {origin.campaign}, measured on {conditions.cpu} "
            f"({conditions.machine}, kernel {conditions.kernel}) at {conditions.rate_rps:g} "
            "requests/s"
        ),
        f"saved at {found.saved_at} with {_listed(found.versions)}",
    )
    return tabled(
        f"{name}: models of {origin.arch} {origin.workload}",
        (
            Column("family", "text"),
            *numbers("MAPE", "R² of the logarithm", "rank correlation"),
            *texts("and with", "SHA-256"),
        ),
        (
            (
                model.family,
                f"{model.error.mape:.0f} %",
                f"{model.error.r2:.2f}",
                f"{model.error.spearman:.2f}",
                _listed({k: v for k, v in model.libraries.items() if k not in found.versions}),
                model.sha256[:12],
            )
            for model in found.models
        ),
        notes,
    )


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{library} {version}" for library, version in versions.items())
