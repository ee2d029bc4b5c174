"""docs/counters.md: the catalogue of counters in tables, by mechanism."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

from intop.config.counters import load_counters
from intop.domain.counters import CounterCatalogue
from scripts.references.markdown import MADE, table

KERNEL = "https://github.com/torvalds/linux/blob/v6.18/"
HEAD = """\
What intop reads on each host before, during and after each load
([how](measurement.md#counters)), and the mechanism that each counter is a sign of.
`intop export --format csv --counters` writes them, as `HOST.COUNTER`.

- **more is**: what more of it means for latency.
- **level**: a quantity that goes up and down; the highest of a trial counts. All others only grow,
  and their growth over the trial counts.
- `softnet.` stands for each processor (`softnet.cpu0.`), `tcp_info.` for each side of the load
  balancer: `clients.` and `upstreams.`.
- **defined in**: a document or file of the kernel's source.
"""
OTHERS = "Of no mechanism in particular"


def document(path: Path) -> str:
    """The whole document. Raises ConfigurationError when the catalogue is wrong."""
    catalogue = load_counters(path)
    parts = ["# Counters\n", MADE.format(source="`configs/counters.toml`"), HEAD]
    for name, mechanism in catalogue.mechanisms.items():
        parts += [f"## {name}\n", f"{mechanism.about}\n", _table(catalogue, name)]
    parts += [f"## {OTHERS}\n", _table(catalogue, "")]
    return "\n".join(parts)


def _table(catalogue: CounterCatalogue, mechanism: str) -> str:
    return table(["counter", "meaning", "more is", "defined in"], _rows(catalogue, mechanism))


def _rows(catalogue: CounterCatalogue, mechanism: str) -> Iterator[list[str]]:
    for counter in catalogue.counters.values():
        if counter.mechanism == mechanism:
            yield [
                f"`{counter.name}`" + (" (level)" if counter.level else ""),
                counter.meaning,
                counter.direction,
                f"[{Path(counter.document).name}]({urljoin(KERNEL, counter.document)})",
            ]
