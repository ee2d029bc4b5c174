"""Whose CPU time it was, from the kernel's lists of processes."""

from dataclasses import replace
from pathlib import Path

import pytest

from intop.hosts.processes import Identity, Process, foreign_ticks, parse_process

NGINX = (
    "812 (nginx) S 811 811 811 0 -1 4194624 211 0 0 0 41 59 3 4 20 0 1 0 12345 57634816 1402 "
    "18446744073709551615 1 1 0 0 0 0 0 1073745920 402745863 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0"
)
ODD = NGINX.replace("(nginx)", "(a (b) c) d)").replace("812 ", "90 ", 1)
KERNEL = (
    "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 7 0 0 20 0 1 0 25 0 0 18446744073709551615 0 0 0 "
    "0 0 0 0 2147483647 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
)


def test_a_process_of_the_kernels_list() -> None:
    assert ((812, 12345), Process("nginx", 811, 100, 7)) == parse_process(NGINX)


def test_a_name_may_have_blanks_and_brackets() -> None:
    result = parse_process(ODD)
    assert result is not None
    assert (result[0], result[1].name) == ((90, 12345), "a (b) c) d")


def test_the_kernels_own_threads_are_nobodys() -> None:
    assert parse_process(KERNEL) is None


@pytest.mark.parametrize("line", ["812 (nginx) S 811", "812 (nginx", NGINX.replace("4194624", "x")])
def test_half_a_line_is_refused(line: str) -> None:
    with pytest.raises((ValueError, IndexError)):
        parse_process(line)


# What others took ---------------------------------------------------------------------------------

Listed = dict[Identity, Process]
INIT = {(1, 0): Process("init", 0, 10, 500)}
SSHD = {(20, 5): Process("sshd", 1, 3, 100)}
MAKE = {(30, 6): Process("make", 1, 5, 40)}


def foreign(before: Listed, after: Listed) -> tuple[int, str]:
    return foreign_ticks(before, after, ["nginx", "sshd"])


def test_where_nothing_moves_nobody_took_anything() -> None:
    assert foreign(INIT | SSHD | MAKE, INIT | SSHD | MAKE) == (0, "")


def test_ours_do_not_count_and_neither_does_what_their_commands_took() -> None:
    assert foreign(INIT | SSHD, INIT | {(20, 5): Process("sshd", 1, 90, 4000)}) == (0, "")


def test_others_count_from_where_they_were() -> None:
    hog = {(40, 7): Process("hog", 1, 9000, 0)}
    assert foreign(INIT | hog, INIT | {(40, 7): Process("hog", 1, 9150, 0)}) == (150, "hog")


def test_one_that_began_meanwhile_counts_in_full_also_with_a_used_id() -> None:
    before = {(40, 7): Process("old", 1, 9000, 0)}
    after = {(40, 99): Process("hog", 1, 80, 0)}
    assert foreign(before, after) == (80, "hog")


def test_the_busiest_is_named_by_all_of_its_processes() -> None:
    after: Listed = {(n, 9): Process("make", 1, 30, 0) for n in (50, 51, 52)}
    after[60, 9] = Process("hog", 1, 80, 0)
    assert foreign({}, after) == (170, "make")


def test_the_short_lived_count_by_their_parent() -> None:
    assert foreign(INIT | MAKE, INIT | {(30, 6): Process("make", 1, 5, 110)}) == (70, "make")


def test_what_a_child_had_used_before_is_not_counted_when_it_ends() -> None:
    child = {(31, 8): Process("cc", 30, 1000, 200)}
    ended = {(30, 6): Process("make", 1, 5, 40 + 1000 + 200 + 25)}
    assert foreign(INIT | MAKE | child, INIT | ended)[0] == 25


def test_a_whole_tree_that_ends_goes_to_who_is_left() -> None:
    tree = {(31, 8): Process("sh", 30, 1, 0), (32, 8): Process("cc", 31, 1000, 0)}
    ended = {(30, 6): Process("make", 1, 5, 40 + 1001 + 25)}
    assert foreign(INIT | MAKE | tree, INIT | ended)[0] == 25


def test_what_ends_below_ours_hides_nothing_of_others() -> None:
    session = {(21, 8): Process("bash", 20, 1000, 0)}
    after = {(20, 5): Process("sshd", 1, 3, 1100), (30, 6): Process("make", 1, 5, 110)}
    assert foreign(SSHD | MAKE | session, after) == (70, "make")


def test_one_of_ours_that_ends_below_init_is_not_blamed_on_init() -> None:
    master = {(70, 8): Process("nginx", 1, 20, 0), (71, 8): Process("nginx", 70, 5000, 0)}
    assert foreign(INIT | master, {(1, 0): Process("init", 0, 10, 500 + 5020)}) == (0, "")


def test_one_that_nobody_waits_for_hides_no_other() -> None:
    before = MAKE | {(41, 7): Process("left", 30, 9000, 0), (40, 7): Process("hog", 1, 100, 0)}
    after = MAKE | {(40, 7): Process("hog", 1, 180, 0)}
    assert foreign(before, after) == (80, "hog")


def test_this_process_is_no_foreign_one_and_another_of_its_name_is() -> None:
    made = parse_process(Path("/proc/self/stat").read_text())
    assert made is not None
    (own, started), process = made
    busy = replace(process, own=process.own + 500, children=process.children + 60)
    assert foreign(INIT | {(own, started): process}, INIT | {(own, started): busy}) == (0, "")
    later = (own, started + 1)
    assert (560, process.name) == foreign(INIT | {later: process}, INIT | {later: busy})


def test_a_long_name_is_known_by_what_the_kernel_keeps_of_it() -> None:
    guest = {(80, 9): Process("qemu-system-aar", 1, 500, 0)}
    assert foreign_ticks({}, guest, ["qemu-system-aarch64"]) == (0, "")
