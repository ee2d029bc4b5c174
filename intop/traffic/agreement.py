"""A load beside the log that it was learned from, by a log of each."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from intop.traffic.profile import Profile, path_name
from intop.traffic.workload_text import places


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A quantity of both logs; None where a log does not tell it."""

    quantity: str
    unit: str
    log: float | None
    load: float | None

    @property
    def ratio(self) -> float | None:
        """The load's value / the log's."""
        if self.log is None or self.load is None or self.log == 0:
            return None
        return self.load / self.log


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How well a load imitates a log."""

    compared: tuple[Compared, ...]
    mix_difference: float
    """The share of requests (0 to 1) that would have to ask for another path: the total variation
    distance of both mixes."""
    mix_by_chance: float
    """The same that chance gives two samples of one mix, on average."""
    shares: Mapping[str, tuple[float, float]]
    """The shares of requests of each path: the log's and the load's.

    Paths with ids count as one. Rare paths of a log count for the one that a workload asks for in
    their place.
    """


def agreement(log: Profile, load: Profile) -> Agreement:
    """Compare the traffic of a log with that of a load."""
    shares = _shares(log, load)
    counts = log.counted, load.counted
    return Agreement(
        compared=(
            Compared(quantity="rate", unit="requests/s", log=log.rate_rps, load=load.rate_rps),
            *(
                Compared(
                    quantity=f"index of dispersion over {tenths / 10:g} s",
                    unit="",
                    log=log.dispersion(tenths),
                    load=load.dispersion(tenths),
                )
                for tenths in (1, 10, 100)
            ),
            Compared(
                quantity="requests of a connection",
                unit="",
                log=log.requests_per_connection,
                load=load.requests_per_connection,
            ),
            Compared(
                quantity="median pause of a connection",
                unit="ms",
                log=_ms(log.median_idle_s),
                load=_ms(load.median_idle_s),
            ),
            Compared(
                quantity="mean time of a request",
                unit="ms",
                log=_ms(log.mean_request_s),
                load=_ms(load.mean_request_s),
            ),
            Compared(quantity="mean answer", unit="kB", log=_mean_kb(log), load=_mean_kb(load)),
            Compared(
                quantity="HTTP/2", unit="%", log=_http2_percent(log), load=_http2_percent(load)
            ),
        ),
        mix_difference=math.fsum(abs(a - b) for a, b in shares.values()) / 2,
        mix_by_chance=_by_chance([a for a, _ in shares.values()], counts),
        shares=shares,
    )


def _shares(log: Profile, load: Profile) -> dict[str, tuple[float, float]]:
    place_of = {path_name(path): place for path, place in places(log).items()}
    names: dict[int, str] = {}
    for path in log.paths:  # the first one of a place is the one that a workload asks for
        names.setdefault(place_of[path_name(path.path)], path.path)
    counts: dict[str, list[int]] = {}
    for side, profile in enumerate((log, load)):
        for path in profile.paths:
            place = place_of.get(path_name(path.path))
            name = path.path if place is None else names[place]
            counts.setdefault(name, [0, 0])[side] += path.requests
    totals = [sum(count[side] for count in counts.values()) or 1 for side in (0, 1)]
    return {name: (own / totals[0], sent / totals[1]) for name, (own, sent) in counts.items()}


def _by_chance(shares: list[float], counts: tuple[int, int]) -> float:
    """Return the mean total variation distance of two samples, by the normal approximation."""
    if not all(counts):
        return 0.0
    each = math.fsum(1 / count for count in counts)
    return math.fsum(math.sqrt(share * (1 - share) * each) for share in shares) / math.sqrt(
        2 * math.pi
    )


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


def _mean_kb(profile: Profile) -> float | None:
    requests = sum(path.requests for path in profile.paths)
    return sum(path.bytes for path in profile.paths) / requests / 1000 if requests else None


def _http2_percent(profile: Profile) -> float | None:
    total = sum(profile.protocols.values())
    return 100 * profile.protocols["HTTP/2.0"] / total if total else None
