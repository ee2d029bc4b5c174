"""Does tune find the directive that is known to matter? Beds whose nginx is badly set.

    python -m benchmarks directives-effect      what each known remedy is worth on its bed
    python -m benchmarks directives             tune on each bed, by ten seeds
    python -m benchmarks directives log queues --seeds 2 --start 3 --minutes 100

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

The claim: on each bed nine of ten seeds are all three.
"""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.campaign import begun, context_of, judged
from benchmarks.harness import Cell, Question, Result, UnusableError
from intop.campaign.tune import tune
from intop.config.study import Study, load_study
from intop.domain.cluster import LabSpec, native_arch
from intop.domain.configuration import Configuration
from intop.domain.explanation import Explanation
from intop.domain.nginx.permitted import split_by_kind
from intop.domain.verdict import Verdict
from intop.lab import cluster as lab
from intop.run.campaigns import latest_or_new
from intop.run.opening import cluster_testbed
from intop.store import opened

FOLDER = Path(__file__).parent / "known"
PAIRS = 5
"""Of the effects."""
SHARE = 0.9
"""Share of the runs that are all three."""
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


def run(known: Known, seed: int, folder: Path) -> Run:
    """Return what one campaign came to. It is measured as far as it was not yet."""
    file = folder / f"{known.bed}-{seed}.db"
    with opened(str(file)) as store:
        campaign = store.latest(known.bed)
        if campaign is None or campaign.finished_at is None:
            with on_its_lab(known, seed=seed) as study:
                tune(context_of(store, study), lambda _: None)
            campaign = latest_or_new(store, load_study(_study(known)))
        (subject,) = store.subjects(campaign)
        verdict = store.get(subject, Verdict)
        if verdict is None:
            raise RuntimeError(f"{file}: a finished campaign has a verdict")
        return counted(known, verdict, store.get(subject, Explanation))


def _interval(found: Verdict) -> str:
    return f"{found.ratio:.2f} ({found.ratio_low:.2f} to {found.ratio_high:.2f})"


def row(bed: str, seed: int, run: Run) -> str:
    """Return a row of the table of runs."""
    words = ["yes" if is_so else "no" for is_so in (run.found, run.right_half, run.is_few)]
    halves = run.verdict.halves
    both = "-" if halves is None else f"{halves.kernel.value:.2f}, {halves.nginx.value:.2f}"
    interval = _interval(run.verdict)
    return f"| {bed} | {seed} | {interval} | {both} | {run.changes} | {' | '.join(words)} |"


class OnBeds(Question[Cell, Result]):
    """A question about some of the beds."""

    has_store = True

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        names = [known.bed for known in BEDS]
        parser.add_argument("bed", nargs="*", help=f"of {', '.join(names)}; all by default")

    def beds(self) -> list[Known]:
        """Return the beds that were asked for."""
        names = [known.bed for known in BEDS]
        if unknown := set(self.given.bed) - set(names):
            raise UnusableError(f"unknown: {', '.join(sorted(unknown))}")
        return [known for known in BEDS if known.bed in (self.given.bed or names)]


class Effects(OnBeds[tuple[Known, Mapping[str, str]], Verdict]):
    """What is each known remedy worth on its bed?"""

    result = Verdict

    def cells(self) -> dict[str, tuple[Known, Mapping[str, str]]]:
        places = [(known, remedy) for known in self.beds() for remedy in known.remedies]
        return {
            f"| {known.bed} | {', '.join(f'`{k} = {v}`' for k, v in remedy.items())} |": (
                known,
                remedy,
            )
            for known, remedy in places
        }

    def measure(self, cell: tuple[Known, Mapping[str, str]]) -> Verdict:
        return effect(*cell, self.given.store)

    def table(self, results: Mapping[str, Verdict]) -> Iterator[str]:
        yield f"| bed | remedy | P99 times lower, {PAIRS} pairs |"
        yield "|---|---|---:|"
        for name, verdict in results.items():
            yield f"{name} {_interval(verdict)} |"


class Directives(OnBeds[tuple[Known, int], Run]):
    """Does tune find the directive that matters?"""

    seeds = 10
    result = Run
    may_end_early = True

    def cells(self) -> dict[str, tuple[Known, int]]:
        # Seed by seed, so that an early end leaves all beds with as many.
        places = [(known, seed) for seed in self.seed_range() for known in self.beds()]
        return {f"{known.bed} {seed}": (known, seed) for known, seed in places}

    def measure(self, cell: tuple[Known, int]) -> Run:
        return run(*cell, self.given.store)

    def table(self, results: Mapping[str, Run]) -> Iterator[str]:
        heads = "P99 times lower | kernel's half, nginx's | changes | found | half | few"
        yield f"| bed | seed | {heads} |"
        yield "|---|---:|---:|---|---:|---|---|---|"
        for name, result in results.items():
            bed, _, seed = name.partition(" ")
            yield row(bed, int(seed), result)
        yield ""
        for bed, right in self._right(results).items():
            yield f"{bed}: {sum(right)} of {len(right)} runs are all three."

    def missed(self, results: Mapping[str, Run]) -> list[str]:
        return [
            f"{bed}: {sum(right)} of {len(right)} runs"
            for bed, right in self._right(results).items()
            if sum(right) < SHARE * len(right)
        ]

    def _right(self, results: Mapping[str, Run]) -> dict[str, list[bool]]:
        """Whether each run is all three, by bed."""
        right: dict[str, list[bool]] = {known.bed: [] for known in self.beds()}
        for name, result in results.items():
            right[name.partition(" ")[0]].append(result.is_right)
        return right
