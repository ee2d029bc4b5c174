"""Recordings made up: their words, and files of them."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from intop.config.recording import Head
from intop.domain.recording import PATH_BITS, Words
from intop.domain.workload import Recording

PATHS = 4
HOUR_S = 3600.0


def words_of(times_us: NDArray[np.int64], paths: NDArray[np.int64]) -> Words:
    """The words of requests in any order."""
    return np.sort(times_us << PATH_BITS | paths).astype("<u8")


def recording(words: Words, seconds: float = HOUR_S) -> Recording:
    return Recording(path="made.up", seconds=seconds, requests=len(words), digest="0a1b2c3d")


def busy_hour(seed: int = 1) -> tuple[Recording, Words]:
    """An hour whose rate doubles, with a burst of 0.4 s now and then, and rarer paths in bursts."""
    draws = np.random.default_rng(seed)
    steady = draws.uniform(0, 1, 80_000) ** 0.8 * HOUR_S
    begins = draws.uniform(0, HOUR_S - 1, 1_000)
    burst = (begins[:, None] + draws.uniform(0, 0.4, (1_000, 40))).ravel()
    times_us = (np.concatenate([steady, burst]) * 1e6).astype(np.int64)
    paths = np.concatenate(
        [draws.choice(3, len(steady), p=[0.7, 0.2, 0.1]), np.full(len(burst), 3)]
    )
    words = words_of(times_us, paths)
    return recording(words), words


def written(path: Path, words: Words, seconds: float = HOUR_S, paths: int = PATHS) -> Path:
    """A file of these requests."""
    path.write_bytes(bytes(Head(round(seconds * 1e6), paths)) + words.tobytes())
    return path
