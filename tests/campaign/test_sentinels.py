"""The default among configurations."""

from intop.campaign.sentinels import with_sentinels
from intop.domain.configuration import DEFAULT, Configuration


def configurations(count: int) -> list[Configuration]:
    return [Configuration({"net.core.somaxconn": str(n)}) for n in range(1, count + 1)]


def test_sentinels_stand_between_the_configurations() -> None:
    made = with_sentinels(configurations(5), 2)
    roles = ["baseline", *("design",) * 2, "sentinel", *("design",) * 2, "sentinel", "design"]
    assert roles == [p.role for p in made]
    assert list(range(8)) == [p.index for p in made]
    assert all(p.configuration == DEFAULT for p in made if p.role != "design")


def test_the_default_stands_there_once_for_each_replica() -> None:
    made = with_sentinels(configurations(5), 2, replicas=2)
    roles = [*("baseline",) * 2, *("design",) * 4, *("sentinel",) * 2, "design"]
    assert roles == [p.role for p in made]
    assert list(range(9)) == [p.index for p in made]
