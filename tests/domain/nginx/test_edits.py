"""Edits of nginx's files: only what is wanted changes, once, and never a directive twice."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from difflib import unified_diff

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.nginx_files import FACTS, catalogue, conf, of_http
from intop.domain.nginx.conf import Conf
from intop.domain.nginx.edits import Changed, changed
from intop.domain.nginx.offer import offer
from intop.domain.nginx.permitted import BY_NAME, PREFIX
from intop.domain.nginx.probe import probed
from intop.domain.nginx.standing import current

ALL_NAMES = {PREFIX + name for name in BY_NAME}


def keyed(values: Mapping[str, str]) -> dict[str, str]:
    return {f"{PREFIX}{key}": value for key, value in values.items()}


def edit(of: Conf, values: Mapping[str, str]) -> Changed:
    return changed(catalogue(), of, keyed(values), FACTS)


def lines(of: Conf, values: Mapping[str, str]) -> list[str]:
    """What a diff would show of all files, without its heads."""
    results = []
    for path, text in edit(of, values).texts.items():
        old = of.sources[path].text
        diff = unified_diff(old.splitlines(), text.splitlines(), lineterm="", n=0)
        results += [line for line in diff if not line.startswith(("---", "+++", "@@"))]
    return results


def test_what_stands_is_changed_where_it_stands() -> None:
    assert lines(conf(), {"events.worker_connections": "2048"}) == [
        "-\tworker_connections 1024;",
        "+\tworker_connections 2048;",
    ]
    assert lines(conf(), {"http.keepalive_timeout": "30"}) == [
        "-    keepalive_timeout 65 60;",
        "+    keepalive_timeout 30s 60;",
    ]


def test_what_does_not_stand_comes_at_the_top_of_its_block() -> None:
    assert lines(conf(), {"http.tcp_nopush": "on"}) == ["+    tcp_nopush on;"]
    assert lines(conf(), {"events.multi_accept": "on"}) == ["+\tmulti_accept on;"]
    assert lines(conf(), {"main.worker_priority": "-5"}) == ["+worker_priority -5;"]


def test_values_that_hold_already_change_nothing() -> None:
    values = {"http.sendfile": "on", "http.tcp_nodelay": "on", "main.worker_processes": "2"}
    values |= {"events.worker_connections": "1024", "http.proxy_buffers.number": "8"}
    assert (
        lines(
            of_http("sendfile on;\n", events="worker_connections 1024;"),
            {k: v for k, v in values.items() if k != "main.worker_processes"},
        )
        == []
    )
    assert lines(conf(), {"main.worker_processes": "2", "http.sendfile": "on"}) == []
    assert lines(of_http("open_file_cache_valid 1m;\n"), {"http.open_file_cache_valid": "60"}) == []


def test_quotes_hide_no_value_and_stay_where_they_are_needed() -> None:
    results = of_http(
        '"keepalive_timeout" "65";\naccess_log \'/a b\' main;\n'
        "server { listen '80' \"backlog=7\"; }\n"
    )
    assert lines(results, {"http.keepalive_timeout": "65", "listen.backlog": "7"}) == []
    values = {"http.keepalive_timeout": "60", "listen.backlog": "9", "http.access_log.buffer": "8"}
    assert lines(results, values) == [
        '-"keepalive_timeout" "65";',
        "-access_log '/a b' main;",
        "-server { listen '80' \"backlog=7\"; }",
        '+"keepalive_timeout" 60s;',
        "+access_log '/a b' main buffer=8k;",
        "+server { listen '80' backlog=9; }",
    ]


def test_absent_values_take_the_directive_away() -> None:
    results = of_http("", main="timer_resolution 5ms;\nworker_cpu_affinity auto;\n")
    values = {"main.timer_resolution": "0", "main.worker_cpu_affinity": "none"}
    assert lines(results, values) == ["-timer_resolution 5ms;", "-worker_cpu_affinity auto;"]


def test_sizes_change_further_in_and_switches_are_kept() -> None:
    values = {"http.client_body_buffer_size": "64", "http.sendfile": "off"}
    results = of_http("server {\nclient_body_buffer_size 8k;\nsendfile on;\n}\n")
    result = edit(results, values)
    assert result.left == ("/etc/nginx/nginx.conf:5 (http, server) keeps sendfile on",)
    assert lines(results, values) == [
        "+client_body_buffer_size 64k;",
        "-client_body_buffer_size 8k;",
        "+client_body_buffer_size 64k;",
    ]


def test_parts_of_a_directive_are_one_line() -> None:
    values = {"http.output_buffers.number": "4", "http.output_buffers.size": "64"}
    assert lines(of_http("a;\n"), values) == ["+output_buffers 4 64k;"]
    assert lines(of_http("a;\n"), {"http.output_buffers.number": "4"}) == ["+output_buffers 4 32k;"]
    values = {"http.open_file_cache.max": "500", "http.open_file_cache.inactive": "20"}
    assert lines(of_http("a;\n"), values) == ["+open_file_cache max=500 inactive=20s;"]
    assert lines(of_http("open_file_cache off;\n"), values) == [
        "-open_file_cache off;",
        "+open_file_cache max=500 inactive=20s;",
    ]
    assert lines(
        of_http("open_file_cache max=1 inactive=9s;\n"), {"http.open_file_cache.max": "0"}
    ) == ["-open_file_cache max=1 inactive=9s;"]
    assert lines(of_http("a;\n"), {"http.open_file_cache.inactive": "20"}) == []


def test_an_address_has_its_options_in_one_listen() -> None:
    assert lines(conf(), {"listen.backlog": "1000"}) == [
        "-    listen 127.0.0.1:18080 default_server;",
        "-    listen [::1]:18080;",
        "+    listen 127.0.0.1:18080 default_server backlog=1000;",
        "+    listen [::1]:18080 backlog=1000;",
        "-    listen 127.0.0.1:18443 ssl http2;",
        "+    listen 127.0.0.1:18443 ssl http2 backlog=1000;",
    ]


@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        (["listen 80;", "listen *:80 backlog=7;"], ["listen 80;", "listen *:80 backlog=9;"]),
        (["listen 80 reuseport;"], ["listen 80 reuseport backlog=9;"]),
        (["listen 80;", "listen 10.0.0.1:80;"], ["listen 80 backlog=9;", "listen 10.0.0.1:80;"]),
        (["listen 10.0.0.1;"], ["listen 10.0.0.1 backlog=9;"]),
        (
            ["listen 443 quic;", "listen 443 ssl;"],
            ["listen 443 quic;", "listen 443 ssl backlog=9;"],
        ),
        (["listen unix:/x;"], ["listen unix:/x;"]),
        (["listen [::]:80;", "listen 80;"], ["listen [::]:80 backlog=9;", "listen 80 backlog=9;"]),
    ],
)
def test_options_of_addresses(servers: list[str], expected: list[str]) -> None:
    results = of_http("".join(f"server {{\n{listen}\n}}\n" for listen in servers))
    text = edit(results, {"listen.backlog": "9"}).texts.get(
        results.main, results.sources[results.main].text
    )
    assert [line for line in text.splitlines() if line.startswith("listen")] == expected


def test_a_listen_that_several_servers_read_is_left_alone() -> None:
    texts = {"nginx.conf": "events {} http { server { include l; } server { include l; } }"}
    assert lines(conf(texts | {"l": "listen 80;\n"}), {"listen.backlog": "9"}) == []


def test_flags_come_and_go() -> None:
    results = of_http("server { listen 80 reuseport ssl; }\n")
    assert lines(results, {"listen.reuseport": "off"}) == [
        "-server { listen 80 reuseport ssl; }",
        "+server { listen 80 ssl; }",
    ]
    assert lines(results, {"listen.reuseport": "on"}) == []


def test_each_upstream_has_its_keepalive_after_its_method() -> None:
    assert lines(conf(), {"upstream.keepalive": "16"}) == [
        "+    keepalive 16;",
        "-upstream one { server 127.0.0.1:18083; }",
        "+upstream one { server 127.0.0.1:18083; keepalive 16; }",
    ]


def test_version_1_1_comes_with_its_header_where_there_are_headers() -> None:
    results = of_http(
        "server {\n  location /a {\n    proxy_set_header Host x;\n  }\n"
        "  location /w {\n    proxy_set_header connection $upgrade;\n  }\n}\n"
    )
    assert lines(results, {"http.proxy_http_version": "1.1"}) == [
        "+proxy_http_version 1.1;",
        '+    proxy_set_header Connection "";',
        '+proxy_set_header Connection "";',
    ]
    new = replace(FACTS, version=(1, 30, 0))
    wanted = keyed({"http.proxy_http_version": "1.1"})
    assert changed(catalogue(), results, wanted, new).texts == {}


def test_logs_get_a_buffer_where_they_are_files() -> None:
    results = of_http(
        "access_log a.log;\naccess_log syslog:server=x;\nserver { access_log off; "
        "access_log $host.log main; }\n"
    )
    values = {"http.access_log.buffer": "64", "http.access_log.flush": "5"}
    assert lines(results, values) == [
        "-access_log a.log;",
        "+access_log a.log combined buffer=64k flush=5s;",
    ]
    assert lines(results, {"http.access_log.flush": "5"}) == []
    assert lines(of_http("a;\n"), values) == []


def test_logs_that_are_switched_off_are_one_line_of_a_block() -> None:
    results = of_http("access_log a.log;\naccess_log b.log;\nserver {\naccess_log c;\n}\n")
    values = {"http.access_log": "off", "http.access_log.buffer": "64"}
    assert lines(results, values) == [
        "-access_log a.log;",
        "-access_log b.log;",
        "+access_log off;",
        "-access_log c;",
        "+access_log off;",
    ]
    assert lines(of_http("a;\n"), values) == ["+access_log off;"]


def test_a_zone_of_the_users_keeps_its_name() -> None:
    results = of_http(
        "ssl_session_cache builtin shared:SSL:1m;\nserver { ssl_session_cache none; }\n"
    )
    assert lines(results, {"http.ssl_session_cache": "8"}) == [
        "-ssl_session_cache builtin shared:SSL:1m;",
        "-server { ssl_session_cache none; }",
        "+ssl_session_cache builtin shared:SSL:8m;",
        "+server { ssl_session_cache shared:intop:8m; }",
    ]


def test_a_family_of_buffers_gets_one_value_everywhere() -> None:
    # nginx's own 8 4k would not do for the location's 16k, were that set in http alone.
    results = of_http("server {\nproxy_buffers 4 16k;\nproxy_buffer_size 16k;\n}\n")
    assert lines(results, {"http.proxy_buffer_size": "32"}) == [
        "+proxy_buffers 4 16k;",
        "+proxy_buffer_size 32k;",
        "+proxy_busy_buffers_size 48k;",
        "-proxy_buffer_size 16k;",
        "+proxy_buffer_size 32k;",
    ]


def test_buffers_of_several_blocks_fit_each_other_once_they_are_in_one() -> None:
    results = of_http(
        "server {\nproxy_buffers 8 16k;\n}\nserver {\nproxy_temp_file_write_size 8k;\n}\n"
    )
    assert lines(results, {"http.proxy_buffer_size": "8"}) == [
        "+proxy_buffers 8 16k;",
        "+proxy_buffer_size 8k;",
        "+proxy_temp_file_write_size 16k;",
        "-proxy_temp_file_write_size 8k;",
        "+proxy_temp_file_write_size 16k;",
    ]
    results = of_http(
        "server {\nproxy_buffers 4 4k;\n}\nserver {\nproxy_busy_buffers_size 24k;\n}\n"
    )
    assert lines(results, {"http.proxy_buffer_size": "8"}) == [
        "+proxy_buffers 7 4k;",
        "+proxy_buffer_size 8k;",
        "+proxy_busy_buffers_size 24k;",
        "-proxy_buffers 4 4k;",
        "+proxy_buffers 7 4k;",
    ]


def test_text_that_stands_in_other_blocks_too_is_left_alone() -> None:
    texts = {"nginx.conf": "events {} http { include t; } stream { include t; }"}
    results = conf(texts | {"t": "ssl_session_timeout 1h;\ntcp_nodelay off;\n"})
    result = edit(results, {"http.tcp_nodelay": "on"})
    assert result.texts == {}
    assert result.left == ("/etc/nginx/t:2 (http) keeps tcp_nodelay off",)


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"http.root": "/"}, "nginx:http.root is no directive"),
        ({"http.sendfile": "on; root /"}, "'on; root /' is no value of nginx:http.sendfile"),
        ({"http.postpone_output": "1;}"}, "is no value"),
        ({"http.postpone_output": ""}, "is no value"),
        ({"http.postpone_output": "1\n"}, "is no value"),
    ],
)
def test_other_values_are_no_part_of_a_file(values: Mapping[str, str], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        edit(conf(), values)


def test_line_ends_and_indents_are_those_of_the_file() -> None:
    results = Conf.of("/n", {"/n": "events {\r\n\t\tx;\r\n}\r\nhttp {\r\n}"})
    values = {"events.multi_accept": "on", "http.sendfile": "on", "main.worker_priority": "1"}
    text = "worker_priority 1;\r\nevents {\r\n\t\tmulti_accept on;\r\n\t\tx;\r\n}\r\n"
    assert {"/n": text + "http {\r\n    sendfile on;\r\n}"} == edit(results, values).texts


@given(st.integers(min_value=0, max_value=2**32 - 1), st.sampled_from([0.05, 0.3, 1.0]))
def test_any_values_are_set_once_and_hold(seed: int, part: float) -> None:
    before = conf()
    space = offer(catalogue(), probed(catalogue(), before, FACTS), "high", by_name=ALL_NAMES).space
    keys = [p.key for p in space.parameters if random.Random(f"{seed}{p.key}").random() < part]
    chosen = space.restricted(keys)
    genes = np.random.default_rng(seed).random((1, len(chosen.columns)))
    wanted = dict(chosen.configurations(chosen.decode(genes))[0].values)
    result = changed(catalogue(), before, wanted, FACTS)
    after = before.edited(result.texts)
    assert changed(catalogue(), after, wanted, FACTS).texts == {}
    held = current(catalogue(), after, FACTS)
    assert [k for k, v in wanted.items() if held[k] != v and not without_effect(k, held)] == []
    assert not twice(after)


def without_effect(key: str, held: Mapping[str, str | None]) -> bool:
    """Whether it is an option of what is off, which nginx would refuse."""
    directive = catalogue().by_key[key]
    base = key.rpartition(".")[0]
    is_alone = directive.beside and held[f"{base}.{directive.beside}"] == "0"
    return bool(is_alone) or (not directive.inserted and held["nginx:http.access_log"] == "off")


def twice(of: Conf) -> list[object]:
    """Directives that stand twice in one block, of those that may stand there only once."""
    known = {d.name for d in catalogue().by_key.values()} - {"listen", "access_log"}
    results = Counter(
        (place.parents[-1].span if place.parents else "", place.statement.name)
        for place in of.places
        if place.statement.name in known
    )
    return [place for place, count in results.items() if count > 1]
