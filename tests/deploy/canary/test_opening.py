"""What a canary reads from nginx's configuration."""

from dataclasses import replace

import pytest

from intop.deploy.canary.limits import FEWEST_REQUESTS
from intop.deploy.canary.opening import _digest, lines_per_s, ports_of
from intop.deploy.canary.testbed import CHECK_S
from intop.domain.canary import OwnMetric
from intop.domain.nginx.conf import Conf


@pytest.mark.parametrize(
    ("listens", "expected"),
    [
        ("listen 80;", (80,)),
        (
            "listen 443 ssl; listen [::]:443 ssl; listen 192.0.2.1:8080; listen localhost;",
            (443, 8080, 80),
        ),
        ("listen 8000-8002;", (8000, 8001, 8002)),
        ("listen unix:/run/x.sock; listen 443 quic reuseport;", (80,)),
        ("", (80,)),
    ],
)
def test_the_ports_of_clients_are_those_that_http_listens_on(
    listens: str, expected: tuple[int, ...]
) -> None:
    text = f"events {{}}\nhttp {{ server {{ {listens} }} }}\nstream {{ server {{ listen 53; }} }}\n"
    assert ports_of(Conf.of("/n.conf", {"/n.conf": text})) == expected


def test_a_changed_metric_is_another_observation() -> None:
    """Its numbers must not be pooled with earlier ones of the same name."""
    first = OwnMetric(better="lower", command="echo 1")
    digests = {
        _digest(first),
        _digest(replace(first, command="echo 2")),
        _digest(replace(first, better="higher")),
    }
    assert len(digests) == 3
    assert _digest(first) == _digest(replace(first))


@pytest.mark.parametrize(("block_s", "lines"), [(10, 2000), (60, 333), (200, 100), (3600, 100)])
def test_a_check_of_the_limits_has_enough_lines(block_s: int, lines: int) -> None:
    assert int(lines_per_s(block_s)) == lines
    assert lines * CHECK_S >= FEWEST_REQUESTS
