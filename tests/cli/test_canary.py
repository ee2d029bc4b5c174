"""`intop canary`: what it refuses before it reaches a host, and what it asks the host for."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.campaigns import begun
from builders.results import VERDICT
from builders.testbeds import probe_of
from intop.deploy.canary import opening as canary
from intop.domain.configuration import Configuration
from intop.domain.nginx.conf import Conf
from intop.domain.probing import HostFacts
from intop.errors import UsageError
from intop.hosts import sysctl
from intop.store import opened

Call = Callable[..., tuple[int, str, str]]
OWN = {"net.core.somaxconn": "4096", "net.ipv4.tcp_wmem": "4096 16384 4194304"}
LOGS = """
events {}
http {
    log_format timed '$connection $status $request_time';
    access_log /var/log/nginx/timed.log timed;
}
"""


@pytest.fixture
def winner(study: Path) -> Callable[..., None]:
    """Store a verdict of gain for these values."""

    def store(**values: str) -> None:
        _, subject = begun(study.parent, ["ok"])
        configuration = Configuration({key.replace("__", "."): v for key, v in values.items()})
        with opened(str(study.parent / "mine.db")) as opened_store:
            opened_store.put(subject, replace(VERDICT, configuration=configuration))
            opened_store.put(subject, probe_of(OWN))

    return store


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--host", "a", "--between", "9-17"), "say such as 09:00-17:00"),
        (("--sudo", "ask"), "--sudo belongs to --host"),
        (("--host", "a", "--configuration", "nobody"), "there is no baseline nobody"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(
    study: Path, call: Call, words: tuple[str, ...], message: str
) -> None:
    begun(study.parent, ["ok"])
    with pytest.raises(UsageError, match=message):
        call("canary", "-c", study, *words)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"net__core__somaxconn": "64"}, "net.core.somaxconn: a socket takes it when it begins"),
        ({"net__ipv4__tcp_wmem": "4096 16384 65536"}, "the listening socket's default size"),
    ],
)
def test_values_that_need_a_restart_are_refused_with_the_reason(
    study: Path,
    call: Call,
    winner: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    values: dict[str, str],
    reason: str,
) -> None:
    probe = probe_of(OWN)

    def facts(_: object) -> tuple[HostFacts, Conf]:
        return probe.facts, Conf.of("/n.conf", {"/n.conf": LOGS})

    class Nobody:
        def close(self) -> None:
            pass

    def connecting(_: Any) -> Any:
        return lambda _address: Nobody()

    monkeypatch.setattr(canary, "_facts", facts)
    monkeypatch.setattr(sysctl, "probe", lambda *_: dict(probe.readings))
    monkeypatch.setattr("intop.deploy.canary.command.connecting", connecting)
    winner(**values)
    with pytest.raises(UsageError, match=re.escape(reason)):
        call("canary", "-c", study, "--host", "root@lb")
