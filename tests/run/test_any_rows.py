"""Whatever rows somebody else writes into a store, a worker sets and sends what is allowed."""

import json
import math
import sqlite3
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intop.store.documents import document_of
from kit.worker_site import (
    LINGER,
    OVERCOMMIT,
    OWN,
    PORTS,
    PROBING,
    SENDFILE,
    WORKERS,
    Broken,
    Site,
    check,
)

pytestmark = pytest.mark.timeout(600)

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats()
JUNK = WORDS | NUMBERS | st.binary(max_size=8) | st.binary(max_size=8).map(Broken) | st.none()
NUMERALS = [*"0127", "5", "600", "007", "0x1", "-1", "32767", "32768", "0100000", "40000", "65000"]
VALUES = (
    st.lists(st.sampled_from(NUMERALS), min_size=1, max_size=2).map(" ".join)
    | st.sampled_from(["on", "off; x", "40000\t65000", "40000\x0b65000", "\ud800", "1\n2", "\0"])
    | WORDS
)
FIT = {
    PORTS: ["40000 65000", "32768 60999", "32769 40000"],
    PROBING: ["1", "2"],
    OVERCOMMIT: ["1"],
    LINGER: ["5", "600"],
    WORKERS: ["2", "64"],
    SENDFILE: ["off"],
}
OFTEN_FIT = st.sampled_from(sorted(FIT)).flatmap(
    lambda key: st.tuples(st.just(key), st.sampled_from(FIT[key]) | VALUES)
)
ANYTHING = st.tuples(st.sampled_from(["kernel.core_pattern", "net.core.somaxconn"]) | WORDS, VALUES)
CONFIGURATIONS = (OFTEN_FIT | OFTEN_FIT | OFTEN_FIT | ANYTHING).map(lambda pair: dict([pair]))
CONFIGURATIONS |= st.lists(OFTEN_FIT, max_size=3).map(dict)
RATES = st.sampled_from([150.0, 1.0, 99.5, 15_000.0, 15_001.0, 1e12, 0.0, -1.0, math.inf])
RATES |= st.floats()
COUNTS = st.sampled_from([1, 2, 64, 3600, 6400, 6401, 10**5, 10**9, 0, -1])
COUNTS |= st.integers(-(2**63), 2**63 - 1)
PATHS = st.sampled_from(["", "/", "/a.css", "a", "--x", "/ HTTP/1.1\r\nX: y", "/\0"]) | WORDS


def few(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """One of these fields, or two: of more, the first bad one would hide the others."""
    one = st.sampled_from(sorted(fields)).flatmap(lambda n: fields[n].map(lambda v: {n: v}))
    return st.tuples(one, one | st.just({})).map(lambda pair: pair[0] | pair[1])


PLACES = few(
    {
        "configuration": CONFIGURATIONS.map(json.dumps),
        "role": st.sampled_from(["sentinel", "soak", "boss"]),
        "rate_rps": RATES,
        "connections": COUNTS,
        "duration_s": COUNTS,
        "closed_loop": st.sampled_from([0, 1, 7]),
        "path": PATHS,
        "other_workload": st.sampled_from(["dlt", "cdn"]),
    }
)
BAD_PLACES = few(
    dict.fromkeys(("configuration", "role", "stage", "rate_rps", "duration_s", "path"), JUNK)
    | dict.fromkeys(("connections", "closed_loop", "other_workload", "round", "arm"), JUNK)
    | {"arch": st.just("arm")}
)
WORKLOADS = few(
    {
        "name": WORDS,
        "rate_rps": RATES,
        "connections": COUNTS,
        "duration_s": COUNTS | st.none(),
        "script": st.sampled_from(["/etc/passwd", "/x/evil.lua", "x;y.lua", "/any/.lua"]),
        "paths": st.lists(PATHS, max_size=2),
        "scheme": st.sampled_from(["http", "https", "file"]),
        "clients": st.lists(st.fixed_dictionaries({"headers": st.lists(WORDS)}), max_size=2),
        "only_path": PATHS,
    }
)
REQUESTS = few(
    {
        "tunes": st.lists(st.sampled_from(["kernel", "nginx", "all"]), max_size=3),
        "tries_durations": st.booleans(),
        "prune_above_ms": RATES | st.none(),
        "workload": WORDS | NUMBERS,
    }
)
COLUMNS = few(
    dict.fromkeys(("kind", "request", "attempt", "workload", "token", "answer"), JUNK)
    | {"planned_id": st.integers(1, 9) | JUNK, "attempt": st.integers(0, 3)}
    | {"workload": st.sampled_from(["slt", "dlt"]), "kind": st.sampled_from(["refusal", "trial"])}
)
ROWS = st.one_of(
    PLACES.map(lambda place: {"place": place}),
    CONFIGURATIONS.map(lambda values: {"configuration": values}),
    st.tuples(PLACES, REQUESTS).map(lambda two: {"place": two[0], "request": two[1]}),
    st.tuples(WORKLOADS, REQUESTS | st.just({})).map(
        lambda two: {"workload": two[0], "request": two[1]}
    ),
    BAD_PLACES.map(lambda place: {"place": place}),
    COLUMNS.map(lambda columns: {"columns": columns}),
)
"""What a job's row, or its place's, differs in from a good one."""


def write(site: Site, row: dict[str, dict[str, Any]]) -> None:
    """Put such a job, and its place, into the store."""
    document = json.loads(document_of(site.request()))
    document["workload"] |= row.get("workload", {})
    document |= row.get("request", {})
    columns: dict[str, Any] = {}
    if "place" in row:
        columns = {"kind": "trial", "planned_id": site.plan(**row["place"])}
    if "configuration" in row:
        document["configuration"] = {"values": row["configuration"]}
        columns = {"kind": "refusal"}
    site.job(**{"request": json.dumps(document)} | columns | row.get("columns", {}))


def test_whatever_rows_there_are_values_are_fit_loads_are_allowed_and_the_worker_goes_on(
    site: Site,
) -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=250)
    @given(
        st.lists(ROWS, min_size=1, max_size=5),
        st.sampled_from([True, True, False]),
        st.sampled_from(["", *OWN]),
    )
    def one(rows: list[dict[str, Any]], is_late: bool, refuses: str) -> None:
        site.clear()
        site.host.refuses = refuses

        def write_all() -> None:
            site.when_open = lambda: None
            for row in rows:
                with suppress(sqlite3.IntegrityError, OverflowError):  # NaN is null to SQLite
                    write(site, row)

        if is_late:  # on a replica that is open for the campaign already
            site.job()
            site.when_open = write_all
        else:
            write_all()
        site.offer_ours()
        site.work()
        check(site)
        assert site.ours_is_measured()
        seen["examples"] += 1
        seen["written"] += sum(bool(c.values) for c in site.host.written) - 1
        seen["sent"] += len(site.host.sent) - 1
        seen.update(state.decode() for (state,) in site.rows("select state from job"))

    one()
    # It is a test only if much of it is done, and much refused.
    assert seen["examples"] >= 250
    assert min(seen["written"], seen["sent"], seen["done"], seen["failed"]) >= 20, seen
