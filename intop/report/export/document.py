"""A deployment as a JSON document."""

from intop.domain.deployment import Deployment
from intop.domain.sysctl_file import plain_values
from intop.report.machine import to_json
from intop.version import __version__

SCHEMA = 1
"""Grows when a field is renamed or taken away; more fields may come without."""


def document(deployment: Deployment, *, written_at: str) -> str:
    """Indented JSON: provenance, values by key, what is known of each change, the verdict.

    Raises UsageError as the other formats do, so that they have the same values.
    """
    fields = {name: getattr(deployment, name) for name in deployment.__dataclass_fields__}
    return to_json(
        {
            "written_by": f"intop {__version__}",
            "written_at": written_at,
            "schema": SCHEMA,
            "values": {**plain_values(deployment), **deployment.directives},
            **fields,
        }
    )
