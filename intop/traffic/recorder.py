"""The recording of a log's busiest hour, in memory that does not grow with the log."""

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryFile
from typing import IO

import numpy as np
from numpy.typing import NDArray

from intop.atomic import beside
from intop.config.recording import Head, chunks, recording_of
from intop.domain.recording import MOST_PATHS, PATH_BITS
from intop.domain.workload import Recording
from intop.traffic.profile import HOUR_S, Profile

_WORD = struct.Struct("<q")


@dataclass
class Recorder:
    """The requests of some hours, each hour in a file without a name.

    A word has a request's begin in µs since its hour began, and the number of its path here. The
    begin may lie before the hour: a log has the times at which requests ended.
    """

    _hours: dict[int, IO[bytes]] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)
    _last: int | None = None
    _random: Random = field(default_factory=lambda: Random(1))

    def add(self, ended_s: float, took_s: float, within_s: float, path: str | None) -> None:
        """Add a request of the hour in which it ended.

        Times are in s. The log's clock rounds down to `within_s`, so the begin is drawn within it.
        A request without a path has that of the request before it.
        """
        number = self._last if path is None else self._numbers.setdefault(path, len(self._numbers))
        if number is None:
            return
        self._last = number
        hour, rest_s = int(ended_s // HOUR_S), ended_s % HOUR_S
        began_s = rest_s - min(max(0.0, took_s), HOUR_S) + self._random.random() * within_s
        if hour not in self._hours:
            self._hours[hour] = TemporaryFile()  # noqa: SIM115 (keep closes it)
        self._hours[hour].write(_WORD.pack(int(1e6 * began_s) << PATH_BITS | number))

    def keep(self, hours: Collection[int]) -> None:
        """Forget all hours but these."""
        for hour in self._hours.keys() - hours:
            self._hours.pop(hour).close()

    def write(self, path: Path, profile: Profile, places: Mapping[str, int]) -> Recording:
        """Write the profile's busiest hour, or the part of it that the log has.

        `places` has the place in the workload's list for each path. A request that began before
        the hour goes to its end, where others are missing: they end after it.

        Raises:
            OSError: the file can't be written.
            ValueError: no request of the hour has a path.
        """
        begin_s, end_s, _ = profile.busiest_part or (0.0, 0.0, 0)
        hour = int(begin_s // HOUR_S)
        if (spool := self._hours.get(hour)) is None:
            raise ValueError("no request of the busiest hour has a path that may be written")
        # The last moment of the log lasts as long as its clock's unit.
        end_s = min(end_s + (1e-3 if profile.has_parts else 1.0), (hour + 1) * HOUR_S)
        length_us = round(1e6 * max(1.0, end_s - begin_s))
        shift_us = round(1e6 * (begin_s - hour * HOUR_S))
        place_of = np.array([places[name] for name in self._numbers])
        spool.flush()
        words: NDArray[np.int64] = np.memmap(spool, dtype="<i8", mode="r+")
        for part in chunks(words):
            times_us = ((part >> PATH_BITS) - shift_us) % length_us
            part[:] = times_us << PATH_BITS | place_of[part & (MOST_PATHS - 1)]
        words.sort()
        draft = beside(path)
        try:
            with draft.open("xb") as output:
                output.write(bytes(Head(length_us, len(set(places.values())))))
                for part in chunks(words):
                    output.write(part.tobytes())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
            self.keep(())
        return recording_of(path)[0]
