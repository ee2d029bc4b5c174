"""An exported deployment as JSON, for programs."""

from dataclasses import fields

from intop.document.machine import to_json
from intop.domain.deployment import Deployment
from intop.domain.sysctl_file import plain_values
from intop.version import __version__

SCHEMA = 1
"""Version of an exported deployment: grows when a field is renamed or taken away."""


def deployment_json(deployment: Deployment, *, written_at: str) -> str:
    """Return an exported deployment: provenance, values by key, each change and the verdict.

    Raises UsageError as the other formats do, so that they have the same values.
    """
    own = {field.name: getattr(deployment, field.name) for field in fields(deployment)}
    return to_json(
        {
            "written_by": f"intop {__version__}",
            "written_at": written_at,
            "schema": SCHEMA,
            "values": {**plain_values(deployment), **deployment.directives},
            **own,
        }
    )
