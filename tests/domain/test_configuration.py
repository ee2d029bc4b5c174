import pytest

from intop.domain.configuration import DEFAULT, Configuration

RMEM, FIN = "net.ipv4.tcp_rmem", "net.ipv4.tcp_fin_timeout"


def test_the_same_values_are_the_same_configuration_however_they_are_written() -> None:
    one = Configuration({RMEM: "1\t2\t3", FIN: "60"})
    other = Configuration({FIN: " 60\n", RMEM: "1 2 3"})
    assert one == other
    assert one.digest == other.digest
    assert one.to_json() == '{"net.ipv4.tcp_fin_timeout":"60","net.ipv4.tcp_rmem":"1 2 3"}'


def test_the_digest_is_stable_between_versions() -> None:
    # Stored trials are grouped by it.
    assert DEFAULT.digest == "44136fa355b3"
    assert Configuration({FIN: "60"}).digest == "ae59cc0cb775"


@pytest.mark.parametrize("other", [{FIN: "61"}, {RMEM: "60"}, {}, {FIN: "60", RMEM: "1 2 3"}])
def test_other_values_have_another_digest(other: dict[str, str]) -> None:
    assert Configuration({FIN: "60"}).digest != Configuration(other).digest


@pytest.mark.parametrize("values", [{}, {FIN: "60"}, {RMEM: "1 2 3", FIN: "x\u00e4"}])
def test_json_round_trip(values: dict[str, str]) -> None:
    configuration = Configuration(values)
    assert configuration == Configuration.from_json(configuration.to_json())


def test_only_the_empty_one_is_the_default() -> None:
    assert DEFAULT.is_default
    assert not Configuration({FIN: "60"}).is_default


def test_a_configuration_does_not_change_with_what_it_was_made_of() -> None:
    values = {FIN: "60"}
    configuration = Configuration(values)
    values[FIN] = "5"
    assert configuration.values == {FIN: "60"}
