"""What one nginx can be tuned by, and why not by the rest."""

from dataclasses import replace

import pytest

from builders.nginx_files import FACTS, catalogue, conf, of_http
from intop.domain.nginx.conf import Conf
from intop.domain.nginx.directive import NginxFacts
from intop.domain.nginx.offer import offer
from intop.domain.nginx.permitted import PREFIX
from intop.domain.nginx.probe import probed
from intop.domain.nginx.standing import current
from intop.domain.probing import Probed

GZIP, LOG = f"{PREFIX}http.gzip", f"{PREFIX}http.access_log"


def offered(of: Conf, facts: NginxFacts = FACTS, **options: object) -> Probed:
    return offer(catalogue(), probed(catalogue(), of, facts), "high", **options)  # type: ignore[arg-type]


def why(key: str, of: Conf, facts: NginxFacts = FACTS) -> str:
    return offered(of, facts).refused[f"{PREFIX}{key}"]


def keys(result: Probed) -> set[str]:
    return {p.key.removeprefix(PREFIX) for p in result.space.parameters}


def test_each_directive_is_in_the_space_or_has_a_reason() -> None:
    result = offered(conf(), by_name={GZIP, LOG})
    assert set(catalogue().by_key) == {p.key for p in result.space.parameters} | set(result.refused)
    # All but those that this nginx or this file has no use for.
    assert {"http.directio", "listen.backlog", "upstream.keepalive", "http.gzip"} <= keys(result)
    assert len(keys(result)) >= 65


def test_denied_ones_need_their_names() -> None:
    assert why("http.gzip", conf()).startswith("on the deny list unless the study allows it")
    assert why("http.gzip_comp_level", conf()) == "without effect: nginx:http.gzip is off"
    assert "http.gzip_comp_level" in keys(offered(of_http("gzip on;\n")))
    assert {"http.gzip", "http.gzip_comp_level"} <= keys(offered(conf(), by_name={GZIP}))


def test_wanted_patterns_and_risks() -> None:
    some = offered(conf(), wanted=["nginx:listen.*"])
    assert {key.split(".")[0] for key in keys(some)} == {"listen"}
    low = offer(catalogue(), probed(catalogue(), conf(), FACTS), "low")
    assert (
        low.refused[f"{PREFIX}listen.deferred"] == "its risk is medium: max_risk in [study] is low"
    )


@pytest.mark.parametrize(
    ("key", "body", "reason"),
    [
        ("upstream.keepalive", "", "there is no upstream block"),
        ("listen.backlog", "", "http listens on no address whose options can be set"),
        ("http.ssl_buffer_size", "server { listen 80; }", "no address is served with TLS"),
        ("http.http2_chunk_size", "server { listen 80 ssl; }", "no address is served with HTTP/2"),
        ("http.ssl_buffer_size", "map $a $b { listen ssl; ssl on; }", "no address is served with"),
        ("http.access_log.buffer", "access_log off;", "no access_log stands that"),
        ("http.access_log.buffer", "access_log a combined gzip;", "no access_log stands that"),
        ("http.access_log.flush", "access_log a;", None),
        ("http.tcp_nopush", "sendfile $x;", "without effect: nginx:http.sendfile is off"),
        (
            "http.keepalive_timeout",
            "keepalive_timeout $a;",
            "none of those that are known: /etc/ng",
        ),
        ("http.aio", "aio threads=mine;", "nginx.conf:3 (http) has 'aio threads=mine'"),
    ],
)
def test_why_a_directive_is_left_out(key: str, body: str, reason: str | None) -> None:
    result = of_http(f"{body}\n")
    if reason is None:
        assert key in keys(offered(result))
    else:
        assert reason in why(key, result)


def test_what_a_build_a_version_and_a_kernel_lack() -> None:
    bare = replace(FACTS, build=(), version=(1, 14, 2), kernel="3.8.0")
    result = offered(conf(), bare, by_name={GZIP})
    assert result.refused["nginx:main.pcre_jit"] == "nginx was built without --with-pcre-jit"
    assert result.refused["nginx:http.keepalive_time"] == "it came with nginx 1.19.10"
    assert result.refused["nginx:listen.reuseport"] == "it needs kernel 3.9"
    only = result.refused["nginx:http.aio"]
    assert only.startswith("only off is offered: nginx was built without --with-threads; ")
    aio = next(p for p in offered(conf()).space.parameters if p.key == "nginx:http.aio")
    assert aio.choices == ("off", "threads")


def test_defaults_are_those_of_the_version() -> None:
    result = of_http("upstream a { server b; }\n")
    values = current(catalogue(), result, FACTS)
    assert (
        values["nginx:http.proxy_http_version"],
        values["nginx:upstream.keepalive"],
    ) == ("1.0", "0")
    values = current(catalogue(), result, replace(FACTS, version=(1, 29, 7)))
    assert (
        values["nginx:http.proxy_http_version"],
        values["nginx:upstream.keepalive"],
    ) == ("1.1", "32")
    assert (
        current(catalogue(), result, replace(FACTS, version=(1, 18, 0)))[
            "nginx:http.keepalive_requests"
        ]
        == "100"
    )


def test_values_are_in_the_units_of_the_catalogue() -> None:
    result = of_http(
        "keepalive_timeout 1m 5s;\nproxy_buffers 4 8192;\nssl_session_cache shared:a:2m;\n"
        "open_file_cache max=9 inactive=1h;\nsend_timeout 1;\nlingering_time 1m30s;\n",
        main="worker_processes auto;\n",
    )
    values = current(catalogue(), result, FACTS)
    assert {
        "http.keepalive_timeout": "60",
        "http.proxy_buffers.number": "4",
        "http.proxy_buffers.size": "8",
        "http.ssl_session_cache": "2",
        "http.open_file_cache.max": "9",
        "http.open_file_cache.inactive": "3600",
        "http.lingering_time": "90",
        "main.worker_processes": "2",
        "http.proxy_busy_buffers_size": "16",
    }.items() <= {k.removeprefix(PREFIX): v for k, v in values.items()}.items()


def test_ranges_follow_the_host() -> None:
    result = {p.key: p for p in offered(conf()).space.parameters}
    assert result["nginx:main.worker_processes"].components[0].high == 4
    assert result["nginx:http.proxy_buffer_size"].components[0].low == 16


def test_both_kinds_are_one_space() -> None:
    from intop.domain.parameter import Component, Parameter
    from intop.domain.space import Space

    somaxconn = Parameter(
        key="net.core.somaxconn", kind="integer", unit="", scope="namespace", risk="low",
        mechanism="m", document="d", components=(Component(name="", low=16, high=65535),),
        scale="log",
    )  # fmt: skip
    kernel = Space((somaxconn,), (), {"net.core.somaxconn": "4096"})
    both = kernel.joined(offered(conf()).space)
    assert 1 + len(offered(conf()).space.parameters) == len(both.parameters)
    assert both.feature_names[0] == "net.core.somaxconn"
    assert both.restricted(["nginx:listen.backlog", "net.core.somaxconn"]).columns


def test_nginx_says_what_it_is() -> None:
    text = (
        "nginx version: nginx/1.22.1\nbuilt with x\nconfigure arguments: --a='b c' --with-threads\n"
    )
    result = NginxFacts.of(text, kernel="6.1", cpus=2, page_bytes=65536, nofile=9)
    assert (
        result.version,
        "--with-threads" in result.build,
        result.page_kib,
    ) == ((1, 22, 1), True, 64)
    openresty = text.replace("nginx/1.22.1", "openresty/1.27.1.2")
    made = NginxFacts.of(openresty, kernel="6.1", cpus=2, page_bytes=4096, nofile=9)
    assert made.version == (1, 27, 1)
    with pytest.raises(ValueError, match="nginx -V printed"):
        NginxFacts.of("command not found", kernel="6.1", cpus=2, page_bytes=4096, nofile=9)


def test_logs_that_are_off_are_nothing_that_can_be_switched_off() -> None:
    result = offered(of_http("access_log off;\n"), by_name={LOG}).refused[LOG]
    assert result == "only off is offered: the files have off, and nothing to put in its place"
