"""Transfer between architectures as a document."""

from collections.abc import Sequence

from intop.domain.comparison import AT_FULL_SPEED
from intop.domain.transfer import Transfer, WarmStart, WorstCase
from intop.report.contest import contest
from intop.report.document.columns import Column, numbers
from intop.report.document.model import Notes, Section, tabled
from intop.report.words import few


def transfer(found: Transfer) -> list[Section]:
    """What is told of one workload: models, measurements, worst cases, and what is missing."""
    blocks = [*warm_starts(found.workload, found.warm_starts)]
    for one in found.crosswise:
        emulated = "" if one.emulation in AT_FULL_SPEED else f", emulated by {one.emulation}"
        blocks.append(contest(f"{one.arch} {found.workload}{emulated}", one.contest))
    if found.crosswise:
        blocks.append(_worst_cases(found))
    if found.missing:
        blocks.append(Section(title="Not done", blocks=(Notes(found.missing),)))
    return blocks


def warm_starts(workload: str, found: Sequence[WarmStart]) -> list[Section]:
    """Learning curves with and without the other machine's trials."""
    return [_warm_start(workload, one) for one in found]


def _warm_start(workload: str, one: WarmStart) -> Section:
    here, there = one.configurations
    most = one.curve[-1].configurations
    shares = ", ".join(f"{way} {100 * share:.0f} %" for way, share in one.shares.items())
    common = f"{len(one.common)} parameters in common"
    return tabled(
        f"{one.target} {workload}: warm start from {one.source}: held-out error "
        f"({one.family}, {one.repeats} repeats)",
        numbers(
            "configurations",
            "from scratch",
            f"with {there} of {one.source}",
            "as good as from scratch",
        ),
        (
            (
                str(point.configurations),
                f"{point.scratch:.1f} %",
                f"{point.warm:.1f} %",
                f"more than {most}" if point.worth is None else f"{point.worth:.0f}",
            )
            for point in one.curve
        ),
        [
            f"{here} configurations of {one.target}; {common}: {few(one.common) or 'none'}",
            f"shares of the warm model with {most}: {shares}",
            *([f"varied on {one.target} only: {few(one.own)}"] if one.own else []),
        ],
    )


def _worst_cases(found: Transfer) -> Section:
    archs = [one.arch for one in found.crosswise]
    lines = ["Default P99 / its own, as measured above; each machine against its own default."]
    if found.compromise is not None:
        told = " and ".join(f"{r:.2f} on {arch}" for arch, r in found.compromise.ratios.items())
        lines.append(f"The models had predicted {told} for the compromise:")
        lines += [f"  {k} = {v}" for k, v in found.compromise.configuration.values.items()]
        if found.compromise.left_out:
            lines.append(f"left out of it: {few(list(found.compromise.left_out))}")
    return tabled(
        f"{' and '.join(archs)} {found.workload}: measured gain, crosswise",
        (
            Column("configuration", "text"),
            *numbers(*(f"on {arch}" for arch in archs)),
            Column("worst", "text"),
        ),
        (
            (case.name, *(str(case.ratios[arch] or "-") for arch in archs), _worst(case))
            for case in found.worst_cases
        ),
        lines,
    )


def _worst(case: WorstCase) -> str:
    least = case.ratios[case.arch] if case.arch is not None else None
    return "-" if least is None else f"{least.value:.2f} on {case.arch}"
