"""A deployment as a profile of TuneD."""

import re

from intop.domain.deployment import Deployment
from intop.domain.sysctl_file import (
    OURS,
    beside,
    comment,
    kernel_changes,
    measured,
    plain_values,
    provenance,
)
from intop.errors import UsageError
from intop.version import __version__

FILE = "tuned.conf"
_NAME = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]*")
"""TuneD leaves out other names, and takes a minus in front for "if there is one"."""
_NO_WORDS = re.compile(r"[^A-Za-z0-9 .,:()%-]")


def profile(deployment: Deployment, *, written_at: str, include: str | None = None) -> str:
    """The text of tuned.conf; `include` names the profile that it builds on.

    Values have no ${...}, which TuneD would expand, and no #, at which it would cut them off.
    Raises UsageError for what TuneD would read otherwise.
    """
    values = plain_values(deployment)
    head = comment(
        f"{OURS} {__version__} at {written_at}.",
        *provenance(deployment),
        *beside(deployment),
        "To undo: tuned-adm profile with the profile of before, or tuned-adm off; TuneD then sets "
        "what was set before. Then remove this folder.",
    )
    summary = _NO_WORDS.sub("_", f"intop, {deployment.title}: {deployment.verdict.gain}")
    main = f"[main]\nsummary={summary}\n"
    if include is not None:
        main += f"include={checked_name(include)}\n"
    settings = "\n".join(
        f"{comment(*measured(deployment, change), f'Default: {change.default}')}"
        f"{change.key}={values[change.key]}\n"
        for change in kernel_changes(deployment)
    )
    return f"{head}\n{main}\n[sysctl]\n{settings}"


def checked_name(name: str) -> str:
    """The name of a profile. Raises UsageError for one that TuneD would not find."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} can't be the name of a TuneD profile: letters, digits, dots, _ and - only, "
            f"and no - in front"
        )
    return name
