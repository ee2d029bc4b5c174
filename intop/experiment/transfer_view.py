"""Transfer between architectures as a document."""

from collections.abc import Iterator

from intop.domain.comparison import AT_FULL_SPEED
from intop.experiment.contest_view import contest_section
from intop.experiment.transfer import Transfer, WorstCase
from intop.experiment.warm_starts import WarmStart
from intop.report.document.columns import Column, numbers
from intop.report.document.model import Notes, Section, tabled
from intop.report.text import few


def transfer_sections(transfer: Transfer) -> Iterator[Section]:
    """Return models, measurements, worst cases, and what is missing of one workload."""
    for warm_start in transfer.warm_starts:
        yield _warm_start(transfer.workload, warm_start)
    for machine in transfer.crosswise:
        carried = machine.emulation
        emulated = "" if carried in AT_FULL_SPEED else f", emulated by {carried}"
        title = f"{machine.arch} {transfer.workload}{emulated}"
        yield contest_section(title, machine.contest)
    if transfer.crosswise:
        yield _worst_cases(transfer)
    if transfer.missing:
        yield Section(title="Not done", blocks=(Notes(transfer.missing),))


def _warm_start(workload: str, warm: WarmStart) -> Section:
    here, there = warm.configurations
    most = warm.curve[-1].configurations
    shares = ", ".join(f"{way} {100 * share:.0f} %" for way, share in warm.shares.items())
    common = f"{len(warm.common)} parameters in common"
    return tabled(
        f"{warm.target} {workload}: warm start from {warm.source}: held-out error "
        f"({warm.family}, {warm.repeats} repeats)",
        numbers(
            "configurations",
            "from scratch",
            f"with {there} of {warm.source}",
            "as good as from scratch",
        ),
        (
            (
                str(point.configurations),
                f"{point.scratch:.1f} %",
                f"{point.warm:.1f} %",
                f"more than {most}" if point.worth is None else f"{point.worth:.0f}",
            )
            for point in warm.curve
        ),
        [
            f"{here} configurations of {warm.target}; {common}: {few(warm.common) or 'none'}",
            f"shares of the warm model with {most}: {shares}",
            *([f"varied on {warm.target} only: {few(warm.own)}"] if warm.own else []),
        ],
    )


def _worst_cases(transfer: Transfer) -> Section:
    archs = [machine.arch for machine in transfer.crosswise]
    lines = ["Default P99 / its own, as measured above; each machine against its own default."]
    if (agreed := transfer.compromise) is not None:
        ratios = " and ".join(f"{ratio:.2f} on {arch}" for arch, ratio in agreed.ratios.items())
        lines.append(f"The models had predicted {ratios} for the compromise:")
        lines += [f"  {key} = {value}" for key, value in agreed.configuration.values.items()]
        if agreed.left_out:
            lines.append(f"left out of it: {few(list(agreed.left_out))}")
    return tabled(
        f"{' and '.join(archs)} {transfer.workload}: measured gain, crosswise",
        (
            Column("configuration", "text"),
            *numbers(*(f"on {arch}" for arch in archs)),
            Column("worst", "text"),
        ),
        (
            (case.name, *(str(case.ratios[arch] or "-") for arch in archs), _worst(case))
            for case in transfer.worst_cases
        ),
        lines,
    )


def _worst(case: WorstCase) -> str:
    least = case.ratios[case.arch] if case.arch is not None else None
    return "-" if least is None else f"{least.value:.2f} on {case.arch}"
