"""Where a controller dies: at every step of a trial, in lanes of which each is a lab's."""

Point = tuple[str, int, str]
"""Step, which of its commands, moment: see signalled.py."""

LANES: tuple[tuple[Point, ...], ...] = (
    (
        ("write", 3, "before"),
        ("restart", 1, "before"),
        ("counters", 5, "after"),
        ("load", 1, "after"),
        ("write", 2, "after"),
        ("store", 1, "after"),
        ("end", 1, "before"),
    ),
    (
        ("begin", 1, "after"),
        ("write", 3, "sent"),
        ("restart", 1, "sent"),
        ("load", 1, "before"),
        ("store", 1, "sent"),
        ("end", 1, "sent"),
    ),
    (
        ("write", 3, "after"),
        ("begin", 1, "before"),
        ("restart", 1, "after"),
        ("load", 1, "sent"),
        ("counters", 8, "sent"),
        ("store", 1, "before"),
        ("end", 1, "after"),
    ),
    (
        ("write", 4, "before"),
        ("install", 1, "sent"),
        ("settle", 1, "before"),
        ("counters", 1, "before"),
        ("load", 1, "within"),
        ("counters", 10, "after"),
        ("renew", 2, "before"),
    ),
    (
        ("begin", 1, "sent"),
        ("write", 4, "sent"),
        ("install", 1, "after"),
        ("settle", 3, "sent"),
        ("renew", 1, "after"),
    ),
)
"""The default is measured first, and each trial writes twice: so the third write sets the first
values. Later in a lane the first trial does. Whoever dies in `begin` may take along what the host
reports of the death before, so that the host was not held then. A host forgets a report when the
session's next command has come, so each other death comes later: the first renewal may be that
command, where the machine is slow."""

POINTS = tuple(point for lane in LANES for point in lane)

UNHELD = {
    ("install", 1, "sent"),
    ("install", 1, "after"),
    ("begin", 1, "before"),
    ("end", 1, "after"),
}
"""Where the host is not taken yet, or given back already: there is nothing to tell."""
UNCERTAIN = {("begin", 1, "sent"), ("end", 1, "sent")}
"""Where that depends on what the host made of a command whose sender is gone."""
