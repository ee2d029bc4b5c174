"""Does tune find the directive that is known to matter? Beds whose nginx is badly set.

    python -m benchmarks.directives --effect            what each known remedy is worth on its bed
    python -m benchmarks.directives --seeds 10          tune on each bed, by ten seeds
    python -m benchmarks.directives log queues --seeds 2 --start 3 --minutes 100

The beds are the studies of benchmarks/known: sysctls and directives are tuned together, over all
that the catalogues offer, and nothing tells tune what matters. A run is a campaign of the product
(`intop tune`) in a store of its own below --store; one that was interrupted goes on, and one that
has ended is read.

What counts, said before any run:

found       the verdict is a gain, and what would be deployed (the smallest set, or the winner where
            that has an obstacle) changes the keys of a known remedy
right half  of a directive: that nginx's half has a gain (its interval is above 1) and a
            larger one than the kernel's half, or that nothing of the kernel's is in the winner; of
            a sysctl the other way round (buffers has such a remedy, too); of the pair: that
            both together are more than the product of both
few         what would be deployed has at most 5 changes

The claim: on each bed nine of ten seeds are all three. Prints Markdown; progress is on stderr.
"""

import argparse
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.campaign import begun, context_of, judged
from intop.config.study import Study, load_study
from intop.domain.cluster import LabSpec, native_arch
from intop.domain.configuration import Configuration
from intop.domain.explanation import Explanation
from intop.domain.nginx.permitted import split_by_kind
from intop.domain.verdict import Verdict
from intop.lab import cluster as lab
from intop.run.campaigns import latest_or_new
from intop.run.opening import cluster_testbed
from intop.stages.tune import tune
from intop.store import Store, opened

FOLDER = Path(__file__).parent / "known"
PAIRS = 5
"""Of --effect."""
MOST_CHANGES = 5


@dataclass(frozen=True)
class Known:
    """What is known of a bed: each of the `remedies` is a set of changes that eases it.

    One of them has to be found: all of its keys, with whatever values.
    """

    bed: str
    remedies: tuple[Mapping[str, str], ...]


BEDS = (
    Known("queues", ({"net.core.somaxconn": "4096", "nginx:listen.backlog": "4096"},)),
    Known("upstreams", ({"nginx:upstream.keepalive": "64"},)),
    Known("log", ({"nginx:http.access_log.buffer": "64"},)),
    Known("workers", ({"nginx:main.worker_processes": "2"},)),
    Known(
        "buffers",
        (
            {"nginx:http.proxy_buffers.number": "256"},
            {"nginx:http.proxy_buffers.size": "128"},
            {"nginx:http.proxy_max_temp_file_size": "0"},
            {"nginx:http.proxy_buffering": "off"},
            {"nginx:listen.sndbuf": "2048"},
            # A small window leaves answers with the backends, so that nothing is spilled.
            {"net.ipv4.tcp_rmem": "4096 16384 16384"},
        ),
    ),
    Known("sessions", ({"nginx:http.ssl_session_cache": "10"},)),
)


@dataclass(frozen=True)
class Run:
    """What one seed came to."""

    found: bool
    right_half: bool
    changes: int
    verdict: Verdict

    @property
    def is_few(self) -> bool:
        """Whether so few changes would be deployed as a person can look at."""
        return 0 < self.changes <= MOST_CHANGES

    @property
    def is_right(self) -> bool:
        """Whether it is all that is claimed."""
        return self.found and self.right_half and self.is_few


def counted(known: Known, verdict: Verdict, explanation: Explanation | None) -> Run:
    """A run's results by what counts."""
    deployed = verdict.configuration
    if explanation is not None and not explanation.obstacle:
        deployed = explanation.minimal
    keys = set(deployed.values)
    found = [one for one in known.remedies if verdict.is_gain and keys >= one.keys()]
    right = any(_right_half(one, verdict) for one in found)
    return Run(bool(found), right, len(keys), verdict)


def _right_half(remedy: Mapping[str, str], verdict: Verdict) -> bool:
    """Whether the verdict attributes the gain to the half, or the pair, that the remedy is."""
    of_kernel, of_nginx = map(bool, split_by_kind(remedy))
    halves = verdict.halves
    if of_kernel and of_nginx:
        return halves is not None and halves.together.low > 1
    if halves is None:
        has_kernel, has_nginx = map(bool, split_by_kind(verdict.configuration.values))
        return (has_kernel, has_nginx) == (of_kernel, of_nginx)
    here, there = (halves.nginx, halves.kernel) if of_nginx else (halves.kernel, halves.nginx)
    return here.low > 1 and here.value > there.value


@contextmanager
def on_its_lab(known: Known, **changes: object) -> Iterator[Study]:
    """The bed's study, on a lab that is up meanwhile."""
    study = load_study(_study(known))
    (spec,) = study.clusters[native_arch()]
    if not isinstance(spec, LabSpec):
        raise TypeError(f"{known.bed} has no lab")
    try:
        lab.up(spec)
        yield replace(study, **changes)  # type: ignore[arg-type]
    finally:
        lab.down(spec.name)


def _study(known: Known) -> Path:
    return FOLDER / f"{known.bed}.toml"


def effect(known: Known, remedy: Mapping[str, str], folder: Path) -> Verdict:
    """What a remedy is worth."""
    budget = replace(load_study(_study(known)).budget, judge_pairs=PAIRS)
    store = folder / f"{known.bed}-effect-{known.remedies.index(remedy)}.db"
    with (
        on_its_lab(known, budget=replace(budget, judge_looks=1)) as study,
        opened(str(store)) as kept,
    ):
        task = begun(kept, study)
        with cluster_testbed(task):
            pass  # the host is probed, as a screening would have done
        return judged(task, "known", Configuration(dict(remedy)))


def run(known: Known, seed: int, folder: Path, *, may_measure: bool) -> Run | None:
    """One campaign: read where it is finished, else measured as far as it was not yet."""
    file = folder / f"{known.bed}-{seed}.db"
    if not (may_measure or file.exists()):
        return None
    with opened(str(file)) as store:
        campaign = store.latest(known.bed)
        if campaign is None or campaign.finished_at is None:
            if not may_measure:
                return None
            _tune(known, seed, store)
            campaign = latest_or_new(store, load_study(_study(known)))
        (subject,) = store.subjects(campaign)
        verdict = store.get(subject, Verdict)
        if verdict is None:
            raise RuntimeError(f"{file}: a finished campaign has a verdict")
        return counted(known, verdict, store.get(subject, Explanation))


def _tune(known: Known, seed: int, store: Store) -> None:
    with on_its_lab(known, seed=seed) as study:
        tune(context_of(store, study), lambda _: None)


def worth(known: Known, remedy: Mapping[str, str], found: Verdict) -> str:
    """A line of the table of effects."""
    changes = ", ".join(f"`{key} = {value}`" for key, value in remedy.items())
    return f"| {known.bed} | {changes} | {_interval(found)} |"


def _interval(found: Verdict) -> str:
    return f"{found.ratio:.2f} ({found.ratio_low:.2f} to {found.ratio_high:.2f})"


def row(known: Known, seed: int, one: Run) -> str:
    """Of the table."""
    words = ["yes" if is_so else "no" for is_so in (one.found, one.right_half, one.is_few)]
    interval, halves = _interval(one.verdict), one.verdict.halves
    told = "-" if halves is None else f"{halves.kernel.value:.2f}, {halves.nginx.value:.2f}"
    return f"| {known.bed} | {seed} | {interval} | {told} | {one.changes} | {' | '.join(words)} |"


def told(beds: Sequence[Known], seeds: Iterable[int], folder: Path, until: float) -> Iterator[str]:
    """The table of all runs, line by line. None begins after `until` (time.monotonic)."""
    yield "| bed | seed | P99 times lower | kernel's half, nginx's | changes | found | half | few |"
    yield "|---|---:|---:|---|---:|---|---|---|"
    right: dict[str, list[bool]] = {known.bed: [] for known in beds}
    # Seed by seed, so that an early end leaves all beds with as many.
    for seed in seeds:
        for known in beds:
            one = run(known, seed, folder, may_measure=time.monotonic() < until)
            if one is not None:
                right[known.bed].append(one.is_right)
                yield row(known, seed, one)
    yield ""
    for bed, found in right.items():
        yield f"{bed}: {sum(found)} of {len(found)} runs are all three."


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [known.bed for known in BEDS]
    parser.add_argument("bed", nargs="*", help=f"of {', '.join(names)}; all by default")
    parser.add_argument("--effect", action="store_true", help="what each known remedy is worth")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--start", type=int, default=1, help="the first seed")
    parser.add_argument("--minutes", type=float, default=1e6, help="after these none is begun")
    parser.add_argument("--store", type=Path, default=Path("build/directives"))
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the lab is taken down all the same
    if unknown := set(given.bed) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    beds = [known for known in BEDS if known.bed in (given.bed or names)]
    given.store.mkdir(parents=True, exist_ok=True)
    if given.effect:
        for known in beds:
            for remedy in known.remedies:
                print(worth(known, remedy, effect(known, remedy, given.store)), flush=True)
        return
    seeds = range(given.start, given.start + given.seeds)
    for line in told(beds, seeds, given.store, time.monotonic() + 60 * given.minutes):
        print(line, flush=True)


if __name__ == "__main__":
    main()
