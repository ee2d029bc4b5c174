"""A load beside its log as a document."""

from collections.abc import Iterator

from intop.document.columns import Column
from intop.document.model import Notes, Section, Table
from intop.traffic.agreement import Agreement


def agreement_section(title: str, result: Agreement) -> Section:
    """Return a table of the quantities, and what the mixes of paths have in common."""
    return Section(
        title=title,
        blocks=(
            Table(
                name="agreement",
                title="The log and the load",
                origin="measured",
                columns=(
                    Column("quantity", "text"),
                    Column("unit", "text"),
                    Column("log"),
                    Column("load"),
                    Column("load / log"),
                ),
                rows=tuple(
                    (row.quantity, row.unit or None, row.log, row.load, row.ratio)
                    for row in result.compared
                ),
            ),
            Notes(tuple(_notes(result))),
        ),
    )


def _notes(result: Agreement) -> Iterator[str]:
    yield (
        f"The mixes of paths differ in {100 * result.mix_difference:.1f} % of the requests. Chance "
        f"alone gives two samples of one mix {100 * result.mix_by_chance:.1f} %."
    )
    yield (
        "An index of dispersion is the variance of counts / their mean: 1 for independent "
        "arrivals. A quantity without a value needs $msec, $connection, $connection_requests or "
        "$request_time in log_format."
    )
