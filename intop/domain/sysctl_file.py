"""A deployment as a file for sysctl.d, with what is known of it in comments."""

import re
import textwrap
from collections.abc import Iterator, Mapping

from intop.domain.deployment import Change, Deployment
from intop.domain.parameter import PARTNERS
from intop.domain.stats import Interval
from intop.errors import UsageError
from intop.version import __version__
from intop.words import capital, percent

NAME = "99-zz-intop.conf"
"""The name of our file. It comes after 99-sysctl.conf, so that a `sysctl --system` doesn't overrule
it unnoticed."""
OURS = "Written by intop"
"""The beginning of the first line, by which a file is known to be ours."""
WIDTH = 100

_KEY = re.compile(r"[A-Za-z0-9_]+([./-][A-Za-z0-9_]+)+")
_VALUE = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.,:/+-]*( [A-Za-z0-9_.,:/+-]+)*")


def sysctl_file(deployment: Deployment, *, written_at: str, host: str | None = None) -> str:
    """Return the file's text, which procps and systemd read alike. It names directives of nginx.

    `written_at` in UTC, ISO 8601. With `host`, intop itself writes it there, and restores.
    Raises UsageError for a key or value of a study that means something else in such a file.
    """
    values = plain_values(deployment)
    for_host = f" for {host}" if host else ""
    blocks = [
        comment(
            f"{OURS} {__version__} at {written_at}{for_host}.",
            *provenance(deployment),
            *beside(deployment),
            "To undo: intop rollback gives the host its values back and removes this file."
            if host
            else "To undo: remove this file, and set the values below that are called the default.",
        )
    ]
    for change in kernel_changes(deployment):
        described = comment(*measured(deployment, change), f"Default: {change.default}")
        blocks.append(f"{described}{change.key} = {values[change.key]}\n")
    return "\n".join(blocks)


def is_ours(text: str) -> bool:
    """Return whether intop wrote a file, going by its first line."""
    return text.startswith(f"# {OURS} ")


def provenance(deployment: Deployment) -> Iterator[str]:
    """Yield where a deployment comes from and what shows that it helps, a sentence each."""
    verdict = deployment.verdict
    yield (
        f"{deployment.title}, {deployment.origin} of study {deployment.study}, campaign "
        f"{deployment.campaign} of {deployment.started_at}."
    )
    yield f"Measured in {verdict.pairs} interleaved pairs of trials: {verdict.gain}."
    why = verdict.causes.summary if verdict.causes else ""
    for what, words in (("It costs", verdict.costs), ("In doubt", verdict.doubts), ("Why", why)):
        if words:
            yield f"{what}: {words}."
    if deployment.kept is not None:
        yield (
            f"In the same {deployment.kept.rounds} rounds the whole winner made "
            f"{verdict.judged_by} {deployment.kept.full.value:.2f} times lower, this smaller set "
            f"{deployment.kept.smaller.value:.2f} times."
        )


def beside(deployment: Deployment) -> Iterator[str]:
    """Yield the directives that belong to the sysctls, in a sentence."""
    if deployment.directives:
        values = ", ".join(f"{key} = {value}" for key, value in deployment.directives.items())
        yield (
            f"It was measured together with directives of nginx, and what this file has is not: "
            f"{values}. intop export --format nginx writes them."
        )


def kernel_changes(deployment: Deployment) -> list[Change]:
    """Return the changes of sysctls. Raises UsageError where there is none to write."""
    changes = [change for change in deployment.changes if change.key in deployment.sysctls]
    if not changes:
        raise UsageError(
            f"{deployment.title} changes directives of nginx only: export them by --format nginx "
            "or --format ansible"
        )
    return changes


def measured(deployment: Deployment, change: Change) -> Iterator[str]:
    """Yield the measurements of a change, a sentence each."""
    known = ratios(change)
    if known:
        words = "; ".join(f"{name} {ratio}" for name, ratio in known)
        verdict = deployment.verdict
        name, level = capital(verdict.judged_by), f"{percent(verdict.level)} intervals"
        yield f"{name} without it / with it, {level}, above 1 it helps: {words}."
    else:
        yield f"What it contributes is not measured{_how(change)}."
    together = change.contribution.keys if change.contribution else (change.key,)
    if len(together) > 1:
        yield f"Measured together: {', '.join(together)}."
    yield f"Risk: {change.risk}. {change.mechanism}."
    partner = PARTNERS.get(change.key)
    if partner is not None and change.default == "0":
        yield f"The kernel sets {partner} to zero with it; setting that one takes this one back."


def _how(change: Change) -> str:
    return " by itself" if change.contribution else " (intop explain does that)"


def ratios(change: Change) -> list[tuple[str, Interval]]:
    """Return the ratios of latency without a change / with it, by what else was set."""
    contribution = change.contribution
    if contribution is None:
        return []
    known = {
        "alone": contribution.alone,
        "in the winner": contribution.left_out,
        "in the smallest set": contribution.missed,
    }
    return [(name, ratio) for name, ratio in known.items() if ratio is not None]


def plain_values(deployment: Deployment) -> Mapping[str, str]:
    """Return the value of each sysctl, of characters without a meaning in any format.

    A study may bring parameters of its own, with any text as a choice. Raises UsageError.
    """
    for key, value in deployment.sysctls.items():
        if not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            raise UsageError(
                f"{deployment.title}: {key!r} = {value!r} can't be written to a file of sysctls "
                f"without a doubt what it means there. Leave the key out of the study's parameters"
            )
    return deployment.sysctls


def comment(*sentences: str) -> str:
    r"""Return lines that all begin with #, whatever is in the text.

    Names come from files: what could end a line or can't be seen is shown as \n or \x1b. Lines are
    short, since some readers take a long one for two.
    """
    return "".join(
        f"{line}\n"
        for text in sentences
        for line in textwrap.wrap(
            _visible(text),
            WIDTH,
            initial_indent="# ",
            subsequent_indent="# ",
            break_on_hyphens=False,
        )
    )


def _visible(text: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
