"""Is a learned load like the log that it was learned from?

    python -m benchmarks learned --jobs 3

Three made-up logs of 20 minutes (`benchmarks/logs.py`): a rate that follows the day, in the common
format with whole seconds; bursts of pages with their pictures; nginx's JSON with its connections.
`intop workload learn` makes a workload and a recording of each. A lab that serves the log's files
plays the whole recording once, and `intop workload check` compares the balancer's log with it.

The replay begins at a multiple of 10 s of the log, so that both are counted in the same tens of
seconds: else the chance of where a second begins would be tested, too. The balancer's times are
moved into the log's hour, since the product takes the busiest hour of a log.

Terms, said before any run:

weights       The total variation distance of the workload's weights from the log's mix is at most
              what chance gives two samples of it on average; so is the replay's.
dispersion    The index over 0.1, 1 and 10 s differs by 20 % at most, where the log has it.
connections   Requests of a connection differ by 10 % at most, where the log has them.

The claim is all of it for all three shapes. A log with whole seconds has no index over 0.1 s, and
only the JSON one has connections.
"""

import argparse
import json
import math
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.harness import Question, UnusableError, positive
from benchmarks.logs import NAME, SHAPES, START, Log, asked, learned_study
from intop.config.recording import words_of
from intop.domain.cluster import LabSpec
from intop.domain.recording import MOST_WINDOWS, Slots, trial_slots, windows
from intop.domain.workload import Workload
from intop.hosts.measure import measure
from intop.hosts.rig import connected, load_tool, upload_load
from intop.hosts.settle import settle
from intop.hosts.ssh import connect
from intop.lab import cluster as lab
from intop.lab.state import folders_of
from intop.lab.texts import LOG_FORMAT, SYNC_FOLDER
from intop.resources import shipped
from intop.traffic.access_log import Lines
from intop.traffic.agreement import agreement
from intop.traffic.log_format import format_of, text_format
from intop.traffic.profile import profile_of

SEED = 1
TENS_S = 10
DISPERSION_WITHIN, CONNECTION_WITHIN = 0.2, 0.1
CONNECTION = "requests of a connection"
LOAD_FORMAT = (
    '$msec $connection $connection_requests "$request" $status $body_bytes_sent $request_time'
)


@dataclass(frozen=True)
class Held:
    """A log and its replay."""

    quantities: dict[str, tuple[float | None, float | None]]
    """The log's and the replay's value of each."""
    weights: float
    """Total variation distances from the log's mix: of the workload's weights, of the replay, and
    what chance gives."""
    mix: float
    chance: float
    lag_ms: float | None


class Learned(Question[str, Held]):
    """Is a learned load like its log?"""

    result = Held
    is_parallel = True
    fixed = ("seconds",)

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("shape", nargs="*", help=f"of {', '.join(SHAPES)}; all by default")
        parser.add_argument("--seconds", type=positive, default=1200, help="of a log (1200)")

    def cells(self) -> dict[str, str]:
        names = self.given.shape or list(SHAPES)
        if unknown := set(names) - set(SHAPES):
            raise UnusableError(f"unknown: {', '.join(sorted(unknown))}")
        return {name: name for name in names}

    def measure(self, cell: str) -> Held:
        log = SHAPES[cell](self.given.seconds)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            # The name is the process's and the shape's: cells run at once, or one after the other.
            lab_name = f"l{os.getpid() % 10_000}{cell[0]}"
            head = (
                f'[study]\nname = "learned"\nstore = "{folder}/learned.db"\n'
                f'[cluster.native]\nlab = "{lab_name}"\naccess_log = "disk"\n'
            )
            study = learned_study(folder, log, head, "--lab", "native")
            ((spec,),) = study.clusters.values()
            assert isinstance(spec, LabSpec)
            load = study.workloads[NAME]
            assert load.recording is not None
            # As fast as the log, whose rate the text rounds, and a second longer at most.
            rate_rps, seconds = load.recording.rate_rps, math.ceil(load.recording.seconds)
            load = replace(load, rate_rps=rate_rps, duration_s=seconds, warmup_s=0)
            lag_ms = replayed(spec, load, folder / "load.log")
            words = ("load.log", "--load-format", LOAD_FORMAT, "--json")
            checked = json.loads(asked(folder, "check", log, *words))
            return Held(
                quantities={r["quantity"]: (r["log"], r["load"]) for r in checked["compared"]},
                weights=weights_distance(folder / "access.log", log, load),
                mix=checked["mix_difference"],
                chance=checked["mix_by_chance"],
                lag_ms=lag_ms,
            )

    def table(self, results: Mapping[str, Held]) -> Iterator[str]:
        yield "| shape | quantity | log | load | load / log |"
        yield "|---|---|---:|---:|---:|"
        for name, held in results.items():
            for quantity, (log, load) in held.quantities.items():
                if log is not None and load is not None and log:
                    numbers = f"{log:.3g} | {load:.3g} | {load / log:.3f}"
                    yield f"| {name} | {quantity} | {numbers} |"
            yield (
                f"| {name} | weights from the mix, beside chance | {held.chance:.4f} | "
                f"{held.weights:.4f} | |"
            )
            yield (
                f"| {name} | replay from the mix, beside chance | {held.chance:.4f} | "
                f"{held.mix:.4f} | |"
            )

    def missed(self, results: Mapping[str, Held]) -> list[str]:
        return [f"{name}: {what}" for name, held in results.items() for what in missed_of(held)]


def missed_of(held: Held) -> Iterator[str]:
    """Yield what of the claim a shape misses."""
    for quantity, (log, load) in held.quantities.items():
        within = CONNECTION_WITHIN if quantity == CONNECTION else DISPERSION_WITHIN
        if quantity != CONNECTION and not quantity.startswith("index of dispersion"):
            continue
        if log is not None and (load is None or abs(load / log - 1) > within):
            yield quantity
    if held.weights > held.chance:
        yield "weights"
    if held.mix > held.chance:
        yield "the replay's mix"


def replayed(spec: LabSpec, load: Workload, path: Path) -> float | None:
    """Play a whole recording on a lab, and write what the balancer logs. Return the lateness (ms).

    Times in the file begin at START, as the log's.
    """
    assert load.recording is not None
    try:
        with connected(lab.up(spec), connect) as rig:
            tool = load_tool(rig, load, "engine")
            paths = load.asked(rig.cluster.static_paths, rig.cluster.dynamic_path)
            upload_load(rig, sorted(shipped("lua").glob("*.lua")), paths)
            settle(rig, max_time_wait=20_000, limit_s=60)
            generated = folders_of(spec.name).host("lb") / SYNC_FOLDER / "access.log"
            before = generated.stat().st_size
            words = words_of(load.recording)
            slots = trial_slots(
                words, load.recording, load, seed=SEED, number=number_from_a_ten(load)
            )
            result = measure(rig, tool, load, seed=SEED, slots=slots).result
            path.write_text(moved(generated.read_bytes()[before:].decode(), slots))
            return result.lag_ms
    finally:
        lab.down(spec.name)


def number_from_a_ten(load: Workload) -> int:
    """Return the number of a trial that begins just after a multiple of TENS_S of its recording."""
    recording = load.recording
    assert recording is not None
    lengths = recording.seconds, load.counted_s

    def beyond(number: int) -> float:
        (begin,) = windows(*lengths, MOST_WINDOWS, seed=SEED, number=number)
        return begin % TENS_S

    return min(range(10_000), key=beyond)


def moved(text: str, slots: Slots) -> str:
    """Return a balancer's log in LOAD_FORMAT, the first line where the first slot was due."""
    parse = text_format(LOG_FORMAT).parse
    lines = [values for line in text.splitlines() if (values := parse(line)) is not None]
    if not lines:
        raise UnusableError("the load balancer has logged nothing")
    first_s = START + slots.due_us[0] / 1e6 - float(lines[0]["msec"])
    return "".join(
        f"{float(v['msec']) + first_s:.3f} {v['connection']} {v['connection_requests']} "
        f'"{v["request"]}" {v["status"]} {v["body_bytes_sent"]} {v["request_time"]}\n'
        for v in lines
    )


def weights_distance(path: Path, log: Log, load: Workload) -> float:
    """Return the total variation distance of a workload's weights from its log's mix."""
    parse = format_of(log.line_format).parse
    own = profile_of((place, parse(line)) for place, line in Lines([str(path)]))
    # Compared with itself, it has the shares of the groups that the workload's paths stand for.
    shares = agreement(own, own).shares
    weights = Counter(load.paths)
    total = sum(weights.values())
    return math.fsum(abs(shares[p][0] - weights[p] / total) for p in shares) / 2
