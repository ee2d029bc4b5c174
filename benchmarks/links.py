"""Which congestion control large responses want, by link: two small studies in one table.

The same load (1 MB responses), parameters and budget, on a guest behind a long lossy link and on
one behind a short link with a shallow buffer. What is chosen comes out of collect, train, search
and verify; then it meets the host's own values, BBR alone and cubic alone in a contest. Takes some
25 minutes; progress is on stderr.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

STUDIES = Path(__file__).parent / "links"
NO_GAIN = 3
KEY = "net.ipv4.tcp_congestion_control"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8, help="of the contest (default: 8)")
    parser.add_argument("links", nargs="*", default=["lossy", "short"], help="lossy, short")
    arguments = parser.parse_args()
    print("| link | contestant | congestion control | P99 (ms) | ratio to default | outcome |")
    print("|---|---|---|---|---|---|")
    for name in arguments.links:
        with tempfile.TemporaryDirectory() as folder:
            for cells in rows(STUDIES / f"{name}.toml", Path(folder), arguments.rounds):
                print("| " + " | ".join(cells) + " |", flush=True)


def rows(study: Path, folder: Path, rounds: int) -> list[list[str]]:
    """One study from its lab to its contest, as the cells of the table."""

    def intop(*words: str) -> str:
        command = [sys.executable, "-m", "intop", *words, "--config", str(study)]
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode not in (0, NO_GAIN):
            sys.exit(f"intop {' '.join(words)} ended with {done.returncode}")
        return done.stdout

    contest = ("contest", "cubic", "bbr")
    try:
        intop("lab", "up")
        (diagnosis,) = json.loads(intop("doctor", "--json"))
        for stage in ("collect", "train", "search", "verify"):
            print(intop(stage), file=sys.stderr, flush=True)
        (found,) = json.loads(intop(*contest, "--rounds", str(rounds), "--json")).values()
    finally:
        intop("lab", "down")
    return [[diagnosis["link"], *cells(one)] for one in found["contestants"]]


def cells(contestant: dict[str, Any]) -> list[str]:
    """The cells after the link."""
    chosen = contestant["configuration"]["values"].get(KEY, "the host's own")
    return [
        contestant["name"],
        chosen,
        interval(contestant["p99_ms"], 0),
        interval(contestant["ratio"], 2),
        contestant["outcome"],
    ]


def interval(found: dict[str, float] | None, digits: int) -> str:
    """A value with its interval."""
    if found is None:
        return ""
    value, low, high = (f"{number:.{digits}f}" for number in list(found.values())[:3])
    return f"{value} ({low} to {high})"


if __name__ == "__main__":
    main()
