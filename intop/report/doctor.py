"""What the doctor found, as text."""

from collections import defaultdict

from rich.console import Group, RenderableType
from rich.text import Text

from intop.domain.diagnosis import Diagnosis
from intop.report.text import bold, few, new_table


def examined(found: Diagnosis) -> RenderableType:
    """One cluster: its hosts, what can be tuned, what can't and why, and what is wrong."""
    heading = bold(f"{found.arch}: hosts")
    table = new_table(
        *((name, "left") for name in ("host", "role", "machine", "kernel", "CPUs", "nginx")),
        ("memory", "right"),
        ("clock off", "right"),
    )
    for host in found.hosts:
        facts = host.facts
        table.add_row(
            host.name,
            host.role,
            facts.machine,
            facts.kernel,
            str(facts.cpus),
            facts.nginx.removeprefix("nginx/") or "none",
            f"{facts.memory_bytes / 2**30:.1f} GiB",
            f"{host.clock_offset_s:+.2f} s",
        )
    lines = [f"load tool: {found.load_tool or 'none'}", f"link: {found.link}"]
    lines += [f"load balancer: a virtual machine by {found.emulation}"] if found.emulation else []
    lines += [f"{host.name}: {host.guard}" for host in found.hosts if host.guard]
    lines += [f"parameters that can be tuned: {len(found.offered)}"]
    lines += _refusals(found)
    lines += [f"PROBLEM  {problem}" for problem in found.problems] or ["no problem was found"]
    return Group(heading, table, Text("\n".join(lines)), "")


def _refusals(found: Diagnosis) -> list[str]:
    """The parameters that are out of bounds, by reason."""
    keys: dict[str, list[str]] = defaultdict(list)
    for key, reason in found.refused.items():
        keys[reason].append(key)
    return [f"out of bounds, {len(k)}: {reason}: {few(k)}" for reason, k in keys.items()]
