import pytest

from intop.campaign.screen.view import MOST_RANKS, agreement, rank_notes
from intop.domain.ranking import RankAgreement, RankPair
from kit.printed import cells, shown

pytestmark = pytest.mark.usefixtures("a_narrow_file")


def pair(n: int, one: bool = False, other: bool = False) -> RankPair:
    key = f"net.ipv4.tcp_{n:02}"
    return RankPair(key=key, rank_first=n, rank_second=n + 1, passes_first=one, passes_second=other)


def found(*pairs: RankPair, spearman: float | None = 0.456) -> RankAgreement:
    return RankAgreement(
        first="x86 slt",
        second="x86 dlt",
        spearman=spearman,
        kendall=None if spearman is None else 0.3,
        common=tuple(p.key for p in pairs),
        ranks=pairs,
        chosen_first=("net.a", "net.b", "net.c"),
        chosen_second=("net.b",),
    )


def test_both_ranks_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    pairs = [pair(1, one=True, other=True), pair(2, one=True), pair(3, other=True), pair(4)]
    pairs += [pair(n) for n in range(5, 20)]
    out = shown(capsys, agreement("x86 slt and x86 dlt", found(*pairs)))
    assert "x86 slt and x86 dlt: ranks of the 19 parameters that both rank" in out
    assert cells(out, "net.ipv4.tcp_01") == ["net.ipv4.tcp_01", "1", "2", "both"]
    words = [" ".join(cells(out, f"net.ipv4.tcp_0{n}")[3:]) for n in (2, 3, 4)]
    assert words == ["x86 slt", "x86 dlt", "neither"]
    assert out.count("net.ipv4.tcp_") == MOST_RANKS


def test_agreement_in_numbers() -> None:
    correlation, chosen = rank_notes(found(pair(1)))
    assert correlation.startswith("Rank correlation of the importances: 0.46 (Spearman), 0.30 (K")
    assert chosen == "Chosen by both: 1 of 3 in x86 slt and 1 in x86 dlt: net.b"


def test_without_a_correlation_there_is_none() -> None:
    assert (
        rank_notes(found(pair(1), spearman=None))[0]
        == "Rank correlation of the importances: none can be told"
    )
