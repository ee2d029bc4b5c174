"""Whether `intop soak` tells a load balancer that leaks from one that doesn't, over an hour.

Two labs side by side, each with 50 requests/s. The nginx of both load balancers runs Debian's perl
module, whose handler is called for each request that is passed on. In one of them it keeps memory
for ever, 20 MiB in an hour at this rate: a real leak, in the worker itself. In the other one it
keeps nothing. Both soaks are killed by SIGKILL after half of the time; the same command goes on.

Claims, fixed before the run:

1. With the leak the verdict is "leak" (exit code 3), and the interval of the memory's growth lies
   between 15 and 25 MiB an hour.
2. Without it the verdict is "no leak" (exit code 0).
3. Both keep all blocks from before they were killed, and have as many as planned in the end.
4. There is load in at least 99 % of the time, but for that interruption.
5. A day of blocks takes less than 100 MB of the store (10^6 bytes, the whole file for so many
   blocks).

Prints Markdown, and ends with exit code 1 where a claim does not hold. Needs root, and Debian's
package sources for libnginx-mod-http-perl, which is unpacked into a temporary folder.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intop.config.study import load_study
from intop.domain.cluster import Cluster, LabSpec
from intop.hosts import ssh
from intop.hosts.host import output
from intop.lab import cluster as lab
from intop.store import Subject, opened_to_read

RATE_RPS = 50
PLANTED_MIB = 20.0
LOW_MIB, HIGH_MIB = 15.0, 25.0
CHUNK = 16384
"""Bytes that are kept at a time, so that perl's own overhead is small."""
MOST_DAY_MB, LEAST_LOAD = 100.0, 0.99
PACKAGE = "libnginx-mod-http-perl"

STUDY = """\
[study]
name = "{name}"
store = "{folder}/{name}.db"

[cluster.native]
lab = "{name}"
link = {{ rate_mbit = 75, delay_ms = 5 }}

[workload.slt]
rate_rps = {rate}
connections = 16
duration_s = 2
warmup_s = 1
"""


@dataclass(frozen=True)
class Side:
    """One lab: its study's file, and how much its nginx keeps in an hour (MiB)."""

    name: str
    file: Path
    planted_mib: float
    spec: LabSpec

    def begin(self, options: Sequence[str]) -> subprocess.Popen[bytes]:
        """The soak in a process of its own; what it says is appended to files beside the study."""
        words = [sys.executable, "-m", "intop", "soak", "--config", str(self.file), *options]
        said, result = (self.file.with_suffix(end) for end in (".err", ".json"))
        with said.open("ab") as err, result.open("wb") as out:
            return subprocess.Popen(words, stdout=out, stderr=err)

    def stored(self) -> list[str]:
        """When the blocks in the store began."""
        study = load_study(self.file)
        with opened_to_read(study.store) as store:
            campaign = None if store is None else store.latest(study.name)
            if store is None or campaign is None:
                return []
            subject = Subject(campaign=campaign, arch=self.spec.arch, workload="slt")
            return [trial.started_at for trial in store.trials(subject, "soak")]

    def found(self) -> Mapping[str, Any]:
        """What the soak printed."""
        (found,) = json.loads(self.file.with_suffix(".json").read_text()).values()
        return dict(found)

    @property
    def store_bytes(self) -> int:
        """Of the file, with what SQLite has beside it."""
        store = Path(load_study(self.file).store)
        return sum(part.stat().st_size for part in store.parent.glob(f"{store.name}*"))


def side(folder: Path, name: str, planted_mib: float) -> Side:
    """Writes a study."""
    file = folder / f"{name}.toml"
    file.write_text(STUDY.format(name=name, folder=folder, rate=RATE_RPS))
    ((spec,),) = load_study(file).clusters.values()
    if not isinstance(spec, LabSpec):
        raise TypeError(f"{name} is no lab")
    return Side(name, file, planted_mib, spec)


def unpacked(folder: Path) -> Path:
    """Debian's module, below this folder."""
    subprocess.run(["apt-get", "download", "-q", PACKAGE], cwd=folder, check=True, stdout=2)
    (package,) = folder.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True)
    return folder


def planted(text: str, module: Path, perl: Path, mib_per_hour: float) -> str:
    """The lab's nginx.conf with a handler that keeps so much, by each request its part.

    Raises ValueError for another nginx.conf.
    """
    each = mib_per_hour * 2**20 / 3600 / RATE_RPS
    handler = (
        f"sub {{ our (@kept, $due); $due += {each:.3f}; while ($due >= {CHUNK}) "
        f'{{ my $size = {CHUNK}; push @kept, "x" x $size; $due -= $size; }} return ""; }}'
    )
    http, host = "http {\n", "proxy_set_header Host $host;\n"
    if text.count(http) != 1 or text.count(host) != 1:
        raise ValueError("the lab's nginx.conf is another one")
    text = text.replace(http, f"{http}    perl_modules {perl};\n    perl_set $kept '{handler}';\n")
    # nginx passes no empty header on, but asks the handler for each request.
    text = text.replace(host, f"{host}            proxy_set_header X-Kept $kept;\n")
    return f"load_module {module};\n{text}"


def plant(cluster: Cluster, folder: Path, mib_per_hour: float) -> None:
    """Have the load balancer's nginx keep so much in an hour, by the module in this folder."""
    module = folder / "usr/lib/nginx/modules/ngx_http_perl_module.so"
    (perl,) = folder.glob("usr/lib/*/perl5/*")
    conf = Path(cluster.load_balancer.state_dir).parent / "nginx.conf"
    conf.write_text(planted(conf.read_text(), module, perl, mib_per_hour))
    with closing(ssh.connect(cluster.load_balancer)) as balancer:
        output(balancer, cluster.server_restart)


def row(side: Side, code: int, kept: Sequence[str], block_s: int) -> tuple[str, bool]:
    """A row of the table, and whether all claims hold."""
    found = side.found()
    memory = next(t for t in found["trends"] if t["quantity"] == "nginx memory")
    files = next(t for t in found["trends"] if t["quantity"] == "nginx files")
    p99 = next((t for t in found["trends"] if t["quantity"] == "P99"), None)
    one = memory["per_hour"]
    blocks = found["blocks"]
    day_mb = side.store_bytes / len(blocks) * 86400 / block_s / 1e6
    goes_on = side.stored()[: len(kept)] == list(kept) and len(blocks) == found["planned"]
    expected, code_expected = ("leak", 3) if side.planted_mib else ("no leak", 0)
    told = (found["leak"], code) == (expected, code_expected)
    if side.planted_mib:
        told &= one["low"] >= LOW_MIB and one["high"] <= HIGH_MIB
    holds = (
        told
        and goes_on
        and found["load_share"] >= LEAST_LOAD
        and day_mb < MOST_DAY_MB
        and 0 < len(kept) < len(blocks)
    )
    cells = (
        f"{side.planted_mib:g}",
        f"{found['leak']} ({code})",
        _span(one),
        _span(files["per_hour"]),
        f"{_span(p99['per_hour'])}, {p99['blocks']} blocks" if p99 and p99["per_hour"] else "-",
        f"{len(blocks)} of {found['planned']}, {len(kept)} before the kill",
        f"{found['pause_s']:.2f}",
        f"{100 * found['load_share']:.2f}",
        f"{side.store_bytes / len(blocks) / 1e3:.1f}",
        f"{day_mb:.1f}",
        "yes" if holds else "**no**",
    )
    return f"| {' | '.join(cells)} |", holds


def _span(one: Mapping[str, float]) -> str:
    return f"{one['difference']:+.2f} ({one['low']:+.2f} to {one['high']:+.2f})"


def main() -> None:
    arguments = parsed()
    signal.signal(
        signal.SIGTERM, signal.default_int_handler
    )  # the labs are taken down all the same
    options = ["--hours", f"{arguments.minutes / 60:.6f}", "--block-s", str(arguments.block_s)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        number = os.getpid() % 10_000
        sides = [
            side(folder, f"sl{number}", PLANTED_MIB),
            side(folder, f"sn{number}", 0.0),
        ]
        (folder / "module").mkdir()
        module = unpacked(folder / "module")
        for one in sides:
            stack.callback(lab.down, one.spec.name)
            plant(lab.up(one.spec), module, one.planted_mib)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        soaks = [one.begin([*options, "--json"]) for one in sides]
        stack.callback(lambda: [soak.kill() for soak in soaks])
        time.sleep(30 * arguments.minutes)
        kept = []
        for one, soak in zip(sides, soaks, strict=True):
            soak.kill()
            soak.wait()
            kept.append(one.stored())
        soaks[:] = [one.begin([*options, "--json"]) for one in sides]
        codes = [soak.wait() for soak in soaks]
        seconds = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        for one in sides:
            print(one.file.with_suffix(".err").read_text(), file=sys.stderr)
        if arguments.keep:
            arguments.keep.mkdir(parents=True, exist_ok=True)
            for one in sides:
                kind = "leak" if one.planted_mib else "none"
                text = one.file.with_suffix(".json").read_text()
                (arguments.keep / f"{kind}.json").write_text(text)
        print(
            "| planted, MiB/h | verdict (exit code) | nginx memory, MiB/h | nginx files, 1/h "
            "| P99, %/h | blocks | pause, s | load, % | KB a block | MB a day | holds |"
        )
        print("|---:|---|---|---|---|---|---:|---:|---:|---:|---|")
        rows = [row(*each, arguments.block_s) for each in zip(sides, codes, kept, strict=True)]
        print("\n".join(line for line, _ in rows), flush=True)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"\nEach soak's own process used {100 * cpu_s / 2 / seconds:.2f} % of a processor, "
        f"and at most {after.ru_maxrss / 1024:.0f} MiB."
    )
    sys.exit(0 if all(holds for _, holds in rows) else 1)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60, help="of each soak")
    parser.add_argument("--block-s", type=int, default=60)
    parser.add_argument("--keep", type=Path, help="a folder for what the soaks print")
    return parser.parse_args()


if __name__ == "__main__":
    main()
