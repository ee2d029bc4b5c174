"""What a foreign table came to, as sentences."""

from intop.domain.table import Inventory, Table
from intop.report.document.model import Notes, Section
from intop.report.numbers import counted
from intop.report.text import few

SHOWN_COLUMNS = 8


def inventory(title: str, table: Table) -> Section:
    """What the models learn from, and what was left out, and why."""
    found = table.inventory
    scales = [v.scale for v in table.variables if not v.choices]
    logarithmic = scales.count("log")
    chosen = [v.name for v in table.variables if v.choices]
    kinds = counted(len(scales), "number")
    kinds += f" ({logarithmic} on a logarithmic scale)" if logarithmic else ""
    heading = (
        f"{title}: {counted(found.rows, 'row')}, {counted(len(table.variables), 'variable')}: "
        f"{kinds}, {counted(len(chosen), 'choice')}"
    )
    lines = _sentences(found)
    lines += [f"  choices, not numbers: {few(chosen, SHOWN_COLUMNS)}"] if chosen else []
    return Section(title=heading, blocks=(Notes(tuple(lines)),))


def _sentences(found: Inventory) -> list[str]:
    trials, configurations = counted(found.trials, "trial"), found.configurations
    lines = [f"{trials} of {counted(configurations, 'configuration')}"]
    if found.replicated:
        lines[0] += f", {found.replicated} with several"
    else:
        lines[0] += "; none has several, which would tell how much they scatter"
    if found.copies:
        copies = "1 exact copy" if found.copies == 1 else f"{found.copies} exact copies"
        lines.append(f"{copies} of earlier trials of the same configuration")
    if found.failed:
        failed = f"nothing to learn from {counted(found.failed, 'failed trial')}"
        if found.lost:
            failed += f"; {counted(found.lost, 'configuration')} without others left out"
        lines.append(failed)
    by_reason: dict[str, list[str]] = {}
    for name, why in found.left_out.items():
        by_reason.setdefault(why, []).append(name)
    lines += [f"left out, {why}: {few(keys, SHOWN_COLUMNS)}" for why, keys in by_reason.items()]
    return [f"  {line}" for line in lines]
