"""What a foreign table came to, as sentences."""

from intop.domain.table import Inventory, Table
from intop.report.document.model import Notes, Section
from intop.report.text import few

SHOWN_COLUMNS = 8


def inventory(title: str, table: Table) -> Section:
    """What the models learn from, and what was left out, and why."""
    found = table.inventory
    scales = [v.scale for v in table.variables if not v.choices]
    logarithmic = scales.count("log")
    kinds = f"{len(scales)} numbers"
    kinds += f" ({logarithmic} on a logarithmic scale)" if logarithmic else ""
    heading = (
        f"{title}: {found.rows} rows, {len(table.variables)} variables: {kinds}, "
        f"{len(table.variables) - len(scales)} choices"
    )
    return Section(title=heading, blocks=(Notes(tuple(_sentences(found))),))


def _sentences(found: Inventory) -> list[str]:
    lines = [f"{found.trials} trials of {found.configurations} configurations"]
    if found.replicated:
        lines[0] += f", of which {found.replicated} have several"
    else:
        lines[0] += "; none has several, which would tell how much they scatter"
    if found.copies:
        lines.append(f"{found.copies} trials repeat an earlier one of their configuration exactly")
    if found.failed:
        failed = f"{found.failed} failed trials teach nothing"
        if found.lost:
            failed += f"; {found.lost} configurations have no others, and are left out"
        lines.append(failed)
    by_reason: dict[str, list[str]] = {}
    for name, why in found.left_out.items():
        by_reason.setdefault(why, []).append(name)
    lines += [f"left out, {why}: {few(keys, SHOWN_COLUMNS)}" for why, keys in by_reason.items()]
    return [f"  {line}" for line in lines]
