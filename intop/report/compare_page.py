"""A comparison as a Markdown page that reads by itself: what it is of, and what it can tell."""

import shlex
from collections.abc import Callable, Iterator, Mapping

from intop.document.columns import texts
from intop.document.markdown import as_markdown, image
from intop.document.model import Paragraph, Section, Table
from intop.domain.comparison import Compared, Comparison, Provenance, Side
from intop.report.compare_view import differences, sections
from intop.words import LOADS

SEARCHED = (
    "On each side intop looked for the kernel parameters that lower latency, and measured what it "
    "found against the default, in fresh interleaved pairs."
)

KERNELS = " Part of what looks like one side against the other is one kernel against the other."


def page(compared: Compared, pictures: Mapping[str, str]) -> str:
    """The whole page; `pictures` has the titles of figures by their place, relative to the page."""
    first_name, second_name = (side.name for side in compared.comparisons[0].sides)
    head = Section(
        title=f"{first_name} and {second_name}, side by side",
        blocks=(
            *_forced(compared),
            *_intro(compared),
            Section(title="What was measured", blocks=(_measured(compared),)),
            Section(title="What it can tell, and what it can't", blocks=tuple(_limits(compared))),
        ),
    )
    figures = [image(title, place) for place, title in pictures.items()]
    return "\n\n".join(
        [
            as_markdown((head,), depth=1),
            *(["## Figures", *figures] if figures else []),
            as_markdown(sections(compared)),
        ]
    )


def _forced(compared: Compared) -> Iterator[Paragraph]:
    if lines := differences(compared):
        yield Paragraph("; ".join(lines), lead="Not comparable, shown by --force.")


def _intro(compared: Compared) -> Iterator[Paragraph]:
    first_name, second_name = (side.name for side in compared.comparisons[0].sides)
    workloads = " and ".join(
        f"{LOADS.get(c.workload, 'its load')} ({c.workload})" for c in compared.comparisons
    )
    if compared.is_of_architectures:
        yield Paragraph(
            f"One study on two architectures, {first_name} and {second_name}, under {workloads}: "
            f"{_campaign(compared.provenance[0])}. {SEARCHED}"
        )
    else:
        whence = "; ".join(
            f"{side.name} is {side.arch} in {_campaign(about)}"
            for side, about in zip(compared.comparisons[0].sides, compared.provenance, strict=True)
        )
        yield Paragraph(f"Two sides of a store, under {workloads}. {whence}. {SEARCHED}")
    yield Paragraph(
        "No number in this page was written by hand, and every latency was measured; none is a "
        "prediction. It is generated from the campaign's store by intop "
        f"{compared.provenance[0].tool_version}, with",
        command=shlex.join(["intop", "compare", first_name, second_name, "--markdown"]),
    )


def _campaign(about: Provenance) -> str:
    finished = f"finished {_time(about.finished_at)}" if about.finished_at else "not finished yet"
    return (
        f"campaign {about.campaign} of the study {about.study}, seed {about.seed}, begun "
        f"{_time(about.started_at)} and {finished}"
    )


def _measured(compared: Compared) -> Table:
    """A row for each condition, and for what each workload has of its own."""
    first = compared.comparisons[0]
    rows: list[tuple[str, ...]] = []

    def add(name: str, comparison: Comparison, of: Callable[[Side], object]) -> None:
        rows.append((name, *(str(of(side) or "-") for side in comparison.sides)))

    if not compared.is_of_architectures:
        add("architecture", first, lambda side: side.arch)
        campaigns = (f"{about.campaign} of {about.study}" for about in compared.provenance)
        rows.append(("campaign", *campaigns))
    for name in (
        *("machine", "cpu", "cpus", "kernel", "emulation", "server", "nginx", "nginx_conf"),
        *("generator", "backends", "load_tool", "link", "congestion_control", "server_cpus"),
        "peers_congestion_control",
    ):
        add(
            name.replace("_", " "),
            first,
            lambda side, name=name: getattr(side.conditions, name),  # type: ignore[misc]
        )
    add("intop", first, lambda side: ", ".join(side.measured.tool_versions))
    for c in compared.comparisons:
        add(f"{c.workload}: requests/s asked", c, lambda side: f"{side.conditions.rate_rps:g}")
        add(f"{c.workload}: connections", c, lambda side: side.conditions.connections)
        add(f"{c.workload}: seconds of load a trial", c, lambda side: side.conditions.duration_s)
        add(f"{c.workload}: trials, used here of all", c, _counts)
        add(f"{c.workload}: first trial (UTC)", c, lambda side: _time(side.measured.first_at))
        add(f"{c.workload}: last trial (UTC)", c, lambda side: _time(side.measured.last_at))
    return Table(columns=texts("", *(side.name for side in first.sides)), rows=tuple(rows))


def _counts(side: Side) -> str:
    return f"{side.trials} of {side.measured.attempts}"


def _time(iso: str) -> str:
    """Date and time to the minute, as they are stored, in UTC."""
    return iso[:16].replace("T", " ")


def _limits(compared: Compared) -> Iterator[Paragraph]:
    """Return the limits of the comparison; those of emulation only where there is some."""
    sides = {side.name: side for c in compared.comparisons for side in c.sides}
    emulated = [side for side in sides.values() if side.emulated]
    for side in emulated:
        yield Paragraph(
            "Each instruction of its load balancer is carried out by translation on another "
            "processor. How fast an emulated processor is, how its caches and its memory behave, "
            f"says nothing about any {side.arch} server. No difference between the columns is one "
            "between the architectures.",
            lead=f"{side.name} ({side.conditions.emulation}) is emulated.",
        )
    if emulated:
        yield Paragraph(
            "The translator stalls for tens of milliseconds now and then, which the P99 of some "
            "hundred requests sees. Where intervals are wide, only large gains can be told, and "
            '"no significant gain" means just that.',
            lead="Emulation adds noise.",
        )
        yield Paragraph(
            "which keys its kernel has, their defaults, what it refuses; and what queues, loss, "
            "delay and timers do, since they depend on time and packets, not on the processor. And "
            "that the pipeline does there what it does elsewhere. Whether one architecture is "
            "faster takes its hardware: configs/paper.toml is that study.",
            lead="What is real on an emulated side:",
        )
    first, second = sides.values()
    if first.conditions.kernel != second.conditions.kernel:
        kernels = f"{first.conditions.kernel} and {second.conditions.kernel}"
        yield Paragraph(
            f"({kernels}), and with them defaults and keys; a network namespace also offers fewer "
            "keys than a machine of its own." + ("" if "kernel" in compared.chosen_by else KERNELS),
            lead="The kernels differ",
        )
    yield Paragraph(
        "The sides were measured one after the other. What changed meanwhile, on the machine or "
        "beside it, is in no interval."
    )
    yield Paragraph(
        "It holds for this load over this link. Under another one, a gain may be more, less or "
        "nothing."
    )
