"""Progress of long work on stderr: a live bar on a terminal, plain lines in a log file."""

import json
import re
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from intop.document.terminal import console, is_live
from intop.masking import masked
from intop.words import duration, inert

if TYPE_CHECKING:
    from rich.progress import TaskID

MANY_IN_A_ROW = 5
"""Disturbed trials without another one, from which on the work makes no progress."""
LINE_EVERY_S = 60.0
"""A log of a night has a line a minute at most, beside what is said of single trials."""


class Progress(Protocol):
    """An output on which stages tell their progress."""

    def say(self, text: str) -> None:
        """A message of its own line."""

    def begin(self, title: str, total: int, done: int = 0) -> None:
        """A piece of work of `total` steps starts, of which `done` were made earlier."""

    def step(self, text: str = "") -> None:
        """Count a step; `text` describes it."""

    def disturbed(self, title: str, reason: str) -> None:
        """Count a disturbed trial. Programs get its title and the reason; people the sum."""

    def end(self) -> None:
        """The piece of work is over."""


class _Ended:
    """A context that ends the piece of work when it is left."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """The piece of work is over. Nothing has to be tidied up."""


class _Disturbed:
    """The disturbed trials of a piece of work, by reason but for numbers."""

    def __init__(self) -> None:
        self._reasons: Counter[str] = Counter()
        self._words: dict[str, str] = {}
        self._in_a_row = 0

    def add(self, title: str, reason: str) -> str:
        """Count one. Return a line for the first of a kind, and for many in a row; else ""."""
        kind = re.sub(r"[0-9.]+", "#", reason)
        self._reasons[kind] += 1
        self._in_a_row += 1
        is_new = kind not in self._words
        self._words.setdefault(kind, reason)
        if self._in_a_row % MANY_IN_A_ROW == 0:
            return (
                f"{title} disturbed, as were all of the last {self._in_a_row}: {reason}. "
                "End what disturbs them, or set a higher limit in [budget]"
            )
        return f"{title} disturbed: {reason}" if is_new else ""

    def step(self) -> None:
        """Count a trial that is settled."""
        self._in_a_row = 0

    def __str__(self) -> str:
        """Return such as: 3 disturbed; empty without any."""
        count = self._reasons.total()
        return f"{count} disturbed" if count else ""

    def sentence(self, title: str) -> str:
        """Return the sum with the commonest reason, and forget it; empty without any."""
        count = self._reasons.total()
        if not count:
            return ""
        ((kind, most), *_) = self._reasons.most_common(1)
        others = f" (so {most} of them)" if most < count else ""
        self._reasons.clear()
        trials = "trial was" if count == 1 else "trials were"
        return f"{title}: {count} {trials} disturbed: {self._words[kind]}{others}"


class LineProgress(_Ended):
    """Lines without control characters; at most one in LINE_EVERY_S while steps go on.

    With `stamped` each begins with its time, UTC in ISO 8601, as the store has it.
    """

    def __init__(self, stream: TextIO | None = None, *, stamped: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._stamped = stamped
        self._title = ""
        self._total = self._done = self._before = 0
        self._started = self._printed = 0.0
        self._disturbed = _Disturbed()

    def say(self, text: str) -> None:
        """Print a line."""
        stamp = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} " if self._stamped else ""
        print(f"{stamp}{inert(text)}", file=self._stream, flush=True)

    def disturbed(self, title: str, reason: str) -> None:
        """Count it, for the next line. The first of a kind has a line at once."""
        if line := self._disturbed.add(title, reason):
            self.say(line)

    def end(self) -> None:
        """Say how many trials were disturbed."""
        if sentence := self._disturbed.sentence(self._title):
            self.say(sentence)

    def begin(self, title: str, total: int, done: int = 0) -> None:
        """Announce a piece of work."""
        self._title, self._total, self._done, self._before = title, total, done, done
        self._started = self._printed = time.monotonic()
        earlier = f", {done} of them done earlier" if done else ""
        self.say(f"{title}: {total} steps{earlier}")

    def step(self, text: str = "") -> None:
        """Count a step, and print a line when the last one is long ago."""
        self._done += 1
        self._disturbed.step()
        now = time.monotonic()
        if self._done == self._total or now - self._printed >= LINE_EVERY_S:
            self._printed = now
            left = remaining_s(
                self._done - self._before, self._total - self._done, now - self._started
            )
            parts = [f"{self._done}/{self._total}", f"{duration(left)} left", str(self._disturbed)]
            detail = f" ({text})" if text else ""
            self.say(f"{self._title}: {', '.join(filter(None, parts))}{detail}")


class JsonProgress(_Ended):
    """A line of JSON for each message and step, with its time, UTC in ISO 8601."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._title = ""

    def say(self, text: str) -> None:
        """A line with the message."""
        self._print({"message": text})

    def disturbed(self, title: str, reason: str) -> None:
        """A line with the reason."""
        self._print({"message": f"{title} disturbed: {reason}"})

    def begin(self, title: str, total: int, done: int = 0) -> None:
        """A line that says how much there is to do."""
        self._title = title
        self._print({"message": title, "total": total, "done": done})

    def step(self, text: str = "") -> None:
        """A line for the step."""
        self._print({"message": text, "work": self._title} if self._title else {"message": text})

    def _print(self, fields: dict[str, object]) -> None:
        fields = {name: masked(v) if isinstance(v, str) else v for name, v in fields.items()}
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        print(json.dumps({"time": at} | fields), file=self._stream, flush=True)


class LiveProgress(_Ended):
    """A bar that is redrawn in place, by rich."""

    def __init__(self) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bars

        self._bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            # Of all steps so far: trials take about the same time each.
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[detail]}", markup=False),
            console=console(stderr=True),
            speed_estimate_period=3600,
            transient=True,
            # Results go to stdout, which may be a file: nothing but our bar is ours to draw.
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task: TaskID | None = None
        self._title = ""
        self._disturbed = _Disturbed()

    def disturbed(self, title: str, reason: str) -> None:
        """Count it beside the bar. The first of a kind has a line at once."""
        if line := self._disturbed.add(title, reason):
            self.say(line)

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self._bars.console.print(
            inert(text), markup=False, emoji=False, highlight=False, soft_wrap=True
        )

    def begin(self, title: str, total: int, done: int = 0) -> None:
        """Show a bar."""
        self.end()
        self._title = title
        self._task = self._bars.add_task(_one_line(title), total=total, completed=done, detail="")
        self._bars.start()

    def step(self, text: str = "") -> None:
        """Move the bar."""
        self._disturbed.step()
        if self._task is not None:
            detail = ", ".join(filter(None, (str(self._disturbed), text)))
            self._bars.update(self._task, advance=1, detail=_one_line(detail))

    def end(self) -> None:
        """Take the bar away."""
        if self._task is not None:
            self._bars.stop()
            self._bars.remove_task(self._task)
            self._task = None
        if sentence := self._disturbed.sentence(self._title):
            self.say(sentence)


def progress() -> LineProgress | LiveProgress:
    """The one that fits: live on a terminal that can redraw, lines with a time elsewhere."""
    return LiveProgress() if is_live(sys.stderr) else LineProgress(stamped=True)


def _one_line(text: str) -> str:
    """The text made inert, without line ends and tabs, which would tear a bar apart."""
    return " ".join(inert(text).split())


def remaining_s(done: int, left: int, elapsed_s: float) -> float:
    """Seconds that `left` steps take when `done` took `elapsed_s`."""
    return elapsed_s / max(done, 1) * left
