"""What is effective where nginx takes a statement in several spellings, or takes it twice."""

import pytest

from builders.nginx_files import FACTS, catalogue, of_http
from intop.domain.nginx.edits import changed
from intop.domain.nginx.permitted import PREFIX
from intop.domain.nginx.standing import current, listening


@pytest.mark.parametrize(
    ("key", "body", "expected"),
    [
        ("http.sendfile", "sendfile ON;", "on"),
        ("http.lingering_close", "lingering_close Always;", "always"),
        ("http.directio", "directio 4096K;", "4m"),
        ("http.connection_pool_size", "connection_pool_size 1k;", "1024"),
        ("http.open_file_cache.max", "open_file_cache max=5 max=7;", "7"),
        ("http.open_file_cache.max", "open_file_cache max=7 off;", "0"),
        ("http.ssl_session_cache", "ssl_session_cache shared:a:1m; ssl_session_cache off;", "0"),
        ("http.ssl_session_cache", "ssl_session_cache shared:a:1m shared:b:2m;", "2"),
        ("http.ssl_session_cache", "ssl_session_cache off shared:b:2m;", "0"),
        ("http.access_log", "access_log syslog:server=x;", "on"),
        ("http.access_log", "access_log a; access_log off;", "off"),
        ("http.access_log.buffer", "access_log a combined buffer=4k buffer=8k;", "8"),
        ("listen.backlog", "server { listen 80 backlog=5 backlog=6; }", "6"),
    ],
)
def test_values_are_those_that_nginx_goes_by(key: str, body: str, expected: str) -> None:
    assert current(catalogue(), of_http(body), FACTS)[f"{PREFIX}{key}"] == expected


@pytest.mark.parametrize(
    ("main", "key", "expected"),
    [
        ("worker_priority 0; worker_priority 5;", "main.worker_priority", "5"),
        ("worker_priority +5;", "main.worker_priority", "5"),
        ("worker_cpu_affinity auto 01;", "main.worker_cpu_affinity", None),
        ("thread_pool default threads=4 threads=9;", "main.thread_pool.threads", "9"),
    ],
)
def test_values_of_the_whole_are_those_that_nginx_goes_by(
    main: str, key: str, expected: str | None
) -> None:
    assert current(catalogue(), of_http("", main=main), FACTS)[f"{PREFIX}{key}"] == expected


@pytest.mark.parametrize(
    ("key", "value", "body", "expected"),
    [
        (
            "http.open_file_cache.inactive",
            "9",
            "open_file_cache max=5 max=7;",
            "open_file_cache max=7 inactive=9s;",
        ),
        ("http.open_file_cache.max", "9", "open_file_cache off max=7;", "open_file_cache max=9;"),
        ("http.open_file_cache.max", "0", "open_file_cache max=7 off;", None),
        (
            "http.open_file_cache.max",
            "9",
            "open_file_cache 'max=7' 'inactive=1m 5';",
            "open_file_cache max=9 'inactive=1m 5';",
        ),
        ("http.open_file_cache.inactive", "65", "open_file_cache max=7 'inactive=1m 5';", None),
        ("http.keepalive_timeout", "65", "keepalive_timeout '1m 5';", None),
        (
            "http.ssl_session_cache",
            "9",
            "ssl_session_cache shared:a:1m; ssl_session_cache shared:b:2m;",
            "ssl_session_cache shared:a:1m; ssl_session_cache shared:b:9m;",
        ),
        (
            "http.ssl_session_cache",
            "9",
            "ssl_session_cache off shared:b:2m;",
            "ssl_session_cache shared:intop:9m;",
        ),
        ("http.access_log.buffer", "9", "access_log a combined gzip=4;", None),
        ("http.access_log", "off", "access_log a; access_log off;", None),
        (
            "listen.backlog",
            "9",
            "server { listen 80 backlog=5 backlog=6; }",
            "server { listen 80 backlog=9; }",
        ),
    ],
)
def test_a_value_is_set_where_nginx_goes_by_it(
    key: str, value: str, body: str, expected: str | None
) -> None:
    conf = of_http(f"{body}\n")
    texts = changed(catalogue(), conf, {f"{PREFIX}{key}": value}, FACTS).texts
    old = conf.sources[conf.main].text
    assert old.replace(body, expected or body) == texts.get(conf.main, old)


@pytest.mark.parametrize(
    ("listens", "expected"),
    [
        (["080", "80"], ["*:80"]),
        (["[::1]:81", "[0:0::1]:81"], ["[::1]:81"]),
        (["127.0.0.01:81", "127.0.0.1:81"], ["127.0.0.1:81"]),
        # A name may be the other address, and only a resolver knows.
        (["localhost:81", "127.0.0.1:81"], ["127.0.0.1:81"]),
        (["localhost:81", "127.0.0.1:82"], ["localhost:81", "127.0.0.1:82"]),
        (["81-83", "82"], []),
        (["81-83", "127.0.0.1:82", "[::1]:82"], ["*:81-83", "[::1]:82"]),
    ],
)
def test_an_address_has_one_socket_in_whatever_spelling(
    listens: list[str], expected: list[str]
) -> None:
    conf = of_http("".join(f"server {{ listen {text}; }}\n" for text in listens))
    assert list(listening(conf)) == expected
