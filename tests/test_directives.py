"""The catalogue of nginx's directives: the one that comes with intop, and what one may not say."""

import re
from pathlib import Path
from typing import Any

import pytest

from builders.nginx_files import CATALOGUE, catalogue
from intop.config.directives import load_directives
from intop.domain.nginx.permitted import ALLOWED, BY_NAME, DENIED, PREFIX, denied
from intop.domain.nginx.standing import Directives
from intop.domain.parameter import barred
from intop.errors import ConfigurationError

FIELDS: dict[str, Any] = {
    "key": "nginx:http.postpone_output", "kind": "integer", "low": 1, "high": 9, "scale": "log",
    "unit": "bytes", "risk": "low", "mechanism": "m", "document": "ngx_http_core_module#a",
    "contexts": ["http"], "default": "1", "effective": "reload",
}  # fmt: skip

NAMED = (
    *("main.worker_processes", "main.worker_cpu_affinity", "main.worker_priority"),
    *("events.worker_connections", "main.worker_rlimit_nofile", "events.multi_accept"),
    *("events.accept_mutex", "listen.backlog", "listen.reuseport", "listen.deferred"),
    *("listen.fastopen", "listen.so_keepalive", "listen.rcvbuf", "listen.sndbuf"),
    *("http.sendfile", "http.sendfile_max_chunk", "http.tcp_nopush", "http.tcp_nodelay"),
    *("http.postpone_output", "http.output_buffers.number", "http.output_buffers.size"),
    *("http.keepalive_timeout", "http.keepalive_requests", "upstream.keepalive"),
    *("upstream.keepalive_requests", "upstream.keepalive_time", "http.proxy_http_version"),
    *("http.proxy_buffering", "http.proxy_buffers.number", "http.proxy_buffers.size"),
    *("http.proxy_buffer_size", "http.proxy_busy_buffers_size", "http.open_file_cache.max"),
    *("http.open_file_cache.inactive", "http.open_file_cache_valid"),
    *("http.open_file_cache_min_uses", "http.open_file_cache_errors", "http.aio"),
    *("http.directio", "http.gzip", "http.gzip_comp_level", "http.access_log"),
    *("http.access_log.buffer", "http.access_log.flush", "http.reset_timedout_connection"),
    *("http.lingering_close", "http.ssl_session_cache", "http.ssl_buffer_size"),
    "http.ssl_session_tickets",
)
"""Those that the plan of the feature names."""


def entry(table: str, fields: dict[str, Any]) -> str:
    return f"[[{table}]]\n" + "".join(
        f"{key} = {_toml(value)}\n" for key, value in fields.items() if value is not None
    )


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f'"{k}" = {_toml(v)}' for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def directive(**changes: Any) -> str:
    return entry("directive", FIELDS | changes)


def loaded(tmp_path: Path, *entries: str, head: str = "schema = 1\n") -> Directives:
    path = tmp_path / "own.toml"
    path.write_text(head + "".join(entries))
    return load_directives(path)


def problems(tmp_path: Path, *entries: str, head: str = "schema = 1\n") -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, *entries, head=head)
    return [problem.removeprefix(f"{tmp_path}/") for problem in caught.value.problems]


def test_it_has_all_that_were_planned_and_more() -> None:
    assert {PREFIX + key for key in NAMED} <= set(catalogue().by_key)
    directives = {(d.level, d.name) for d in catalogue().by_key.values()}
    assert len(directives) >= 60
    assert {level for level, _ in directives} == {"main", "events", "http", "listen", "upstream"}


def test_what_interacts_is_a_sysctl_or_another_directive() -> None:
    pairs = {(d.key, key) for d in catalogue().by_key.values() for key in d.interacts}
    assert {
        ("nginx:listen.backlog", "net.core.somaxconn"),
        ("nginx:listen.reuseport", "nginx:events.accept_mutex"),
        ("nginx:events.worker_connections", "nginx:main.worker_rlimit_nofile"),
        ("nginx:listen.fastopen", "net.ipv4.tcp_fastopen"),
    } <= pairs
    for _, key in pairs:
        is_sysctl = re.fullmatch(r"(net|vm|fs|kernel)\.[a-z0-9_.-]+", key)
        assert is_sysctl or key in catalogue().by_key, key


def test_what_is_allowed_is_in_the_catalogue_and_nothing_else() -> None:
    for key in catalogue().by_key:
        assert barred(key, {PREFIX + name for name in BY_NAME}) == ""
    for pattern in ALLOWED:
        result = re.compile(PREFIX + pattern.replace(".", r"\.").replace("*", ".*"))
        assert any(result.fullmatch(key) for key in catalogue().by_key), pattern


@pytest.mark.parametrize(
    "name",
    [
        *("http.root", "http.proxy_pass", "http.proxy_cache", "http.proxy_cache_valid"),
        *("http.ssl_protocols", "http.allow", "http.deny", "http.auth_basic", "http.error_log"),
        *("main.error_log", "main.user", "main.load_module", "http.add_header", "http.limit_req"),
        *("http.client_max_body_size", "http.proxy_read_timeout", "http.proxy_next_upstream"),
        *("upstream.server", "listen.ssl", "http.access_log.path", "http.server_tokens"),
        *("http.content_by_lua_block", "http.include", "http.fastcgi_buffers", "http.gzip_types"),
    ],
)
def test_what_is_served_to_whom_and_logged_where_is_denied(name: str) -> None:
    assert denied(PREFIX + name)
    assert barred(PREFIX + name, {PREFIX + name}).startswith("on the deny list: ")


def test_what_is_on_no_list_is_not_tuned() -> None:
    assert barred("nginx:http.future") == "not on the list of directives that may be tuned"


def test_names_of_the_study_open_only_what_may_be_opened() -> None:
    assert set(BY_NAME) == {"http.access_log", "http.gzip"}
    assert barred("nginx:http.gzip").startswith("on the deny list unless the study allows it")
    assert barred("nginx:http.gzip", {"nginx:http.gzip"}) == ""
    assert not set(BY_NAME) & set(DENIED)


def test_every_problem_has_its_line(tmp_path: Path) -> None:
    result = problems(
        tmp_path,
        directive(low=None),
        directive(key="nginx:http.root"),
        directive(risk="none", effective="later"),
        directive(),
        directive(),
        entry("constraint", {"kind": "less", "low": "nginx:http.a", "high": "b", "why": "w"}),
    )
    assert result[:2] == [
        "own.toml:2: directive.0.low: field required",
        "own.toml:14: directive.1: nginx:http.root is on the deny list: decides what is served",
    ]
    assert any(
        re.match(r"own.toml:\d+: directive.2.risk: input should be 'low'", p) for p in result
    )
    assert any("directive.2.effective: input should be 'reload'" in p for p in result)
    assert any(p.endswith("nginx:http.postpone_output stands there twice") for p in result)
    assert any("constraint.0: nginx:http.a is not a number of the catalogue" in p for p in result)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"key": "http.sendfile"}, "key: must be a key such as"),
        ({"key": "nginx:stream.sendfile"}, "not on the list of directives"),
        ({"default": "on"}, "its default 'on' is no value of it"),
        ({"contexts": ["server"]}, "nginx takes it in server, not in http"),
        ({"contexts": ["http", "mail"]}, "'mail' is no context"),
        ({"flag": "x", "option": "y"}, "one of argument, option, flag and zone"),
        ({"scale": None}, "scale belongs to an integer"),
        ({"low": 9}, "low must be below high"),
        ({"needs": {"since": "1.2"}}, "needs.since: nginx's version is three numbers"),
        ({"needs": {"on": "nginx:http.gzip"}}, "nginx:http.gzip is not in the catalogue"),
        ({"follows": ["nginx:http.gzip"]}, "nginx:http.gzip is not in the catalogue"),
        ({"fixed": ["a; }"]}, "fixed.0: must be words"),
        ({"document": "https://x"}, "must be nginx"),
        ({"extra": "x"}, "extra inputs are not permitted"),
        ({"flag": "x"}, "a flag is on or off"),
    ],
)
def test_entries_that_fit_nothing(tmp_path: Path, changes: dict[str, Any], what: str) -> None:
    (problem,) = problems(tmp_path, directive(**changes))
    assert problem.startswith("own.toml:")
    assert what in problem


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        (
            {"kind": "less", "low": "nginx:http.postpone_output", "high": "nginx:http.gzip"},
            "number",
        ),
        (
            {"kind": "capacity", **dict.fromkeys(("count", "size", "held"), FIELDS["key"])},
            "must be at least 2",
        ),
        ({"kind": "more"}, "does not match any of the expected tags"),
    ],
)
def test_constraints_that_fit_nothing(tmp_path: Path, fields: dict[str, Any], what: str) -> None:
    (problem,) = problems(tmp_path, directive(), entry("constraint", {"why": "w", **fields}))
    assert what in problem


def test_other_files_are_no_catalogue(tmp_path: Path) -> None:
    assert problems(tmp_path, head="schema = 2\n") == ["own.toml:1: schema: must be 1, got 2"]
    assert problems(tmp_path, entry("parameter", {"key": "x"})) == [
        "own.toml:2: parameter: is not a known table"
    ]
    assert [p[:21] for p in problems(tmp_path, head="schema =")] == ["own.toml: is not TOML"]


def test_the_shipped_one_is_found() -> None:
    assert CATALOGUE.is_file()
