"""Transfer between architectures as text."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from intop.domain.comparison import AT_FULL_SPEED
from intop.domain.transfer import Transfer, WarmStart, WorstCase
from intop.report.contest import contest
from intop.report.text import bold, few, new_table


def transfer(found: Transfer) -> RenderableType:
    """What is told of one workload: models, measurements, worst cases, and what is missing."""
    parts: list[RenderableType] = []
    if found.warm_starts:
        parts.append(warm_starts(found.workload, found.warm_starts))
    for one in found.crosswise:
        emulated = "" if one.emulation in AT_FULL_SPEED else f", emulated by {one.emulation}"
        parts.append(contest(f"{one.arch} {found.workload}{emulated}", one.contest))
    if found.crosswise:
        parts.append(_worst_cases(found))
    if found.missing:
        parts.append(Text("\n".join(("Not done:", *(f"  {line}" for line in found.missing), ""))))
    return Group(*parts)


def warm_starts(workload: str, found: Sequence[WarmStart]) -> RenderableType:
    """Learning curves with and without the other machine's trials."""
    parts: list[RenderableType] = []
    for one in found:
        here, there = one.configurations
        title = f"{one.target} {workload}: warm start from {one.source}"
        parts.append(bold(f"{title}: held-out error ({one.family}, {one.repeats} repeats)"))
        table = new_table(
            ("configurations", "right"),
            ("from scratch", "right"),
            (f"with {there} of {one.source}", "right"),
            ("as good as from scratch", "right"),
        )
        most = one.curve[-1].configurations
        for point in one.curve:
            equal = f"more than {most}" if point.worth is None else f"{point.worth:.0f}"
            scratch, warm = f"{point.scratch:.1f} %", f"{point.warm:.1f} %"
            table.add_row(str(point.configurations), scratch, warm, equal)
        parts.append(table)
        shares = ", ".join(f"{way} {100 * share:.0f} %" for way, share in one.shares.items())
        common = f"{len(one.common)} parameters in common"
        notes = [
            f"{here} configurations of {one.target}; {common}: {few(one.common) or 'none'}",
            f"shares of the warm model with {most}: {shares}",
        ]
        if one.own:
            notes.append(f"varied on {one.target} only: {few(one.own)}")
        parts.append(Text("\n".join((*notes, ""))))
    return Group(*parts)


def _worst_cases(found: Transfer) -> RenderableType:
    archs = [one.arch for one in found.crosswise]
    table = new_table(
        ("configuration", "left"),
        *((f"on {arch}", "right") for arch in archs),
        ("worst", "left"),
    )
    for case in found.worst_cases:
        table.add_row(case.name, *(str(case.ratios[arch] or "-") for arch in archs), _worst(case))
    lines = ["Default P99 / its own, as measured above; each machine against its own default."]
    if found.compromise is not None:
        told = " and ".join(f"{r:.2f} on {arch}" for arch, r in found.compromise.ratios.items())
        lines.append(f"The models had predicted {told} for the compromise:")
        lines += [f"  {k} = {v}" for k, v in found.compromise.configuration.values.items()]
        if found.compromise.left_out:
            lines.append(f"left out of it: {few(list(found.compromise.left_out))}")
    title = bold(f"{' and '.join(archs)} {found.workload}: measured gain, crosswise")
    return Group(title, table, Text("\n".join((*lines, ""))))


def _worst(case: WorstCase) -> str:
    least = case.ratios[case.arch] if case.arch is not None else None
    return "-" if least is None else f"{least.ratio:.2f} on {case.arch}"
