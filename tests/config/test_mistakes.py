"""Mistakes in a study's file: all of them at once, each with its place."""

import re
from pathlib import Path

import pytest

from builders.config_files import (
    AT_LEAST,
    CLASSES,
    DURATION,
    GENERATOR,
    GENERATORS,
    HEAD,
    LAB,
    LINK,
    MUST,
    NAME,
    SLT,
    STORE,
    SUDO,
    edited,
    problems,
    study,
    with_budget,
    with_classes,
)
from intop.config.source import plain
from intop.config.study import load_study
from intop.domain.cluster import (
    native_arch,
    other_arch,
)
from intop.domain.workload import REFUSED_HEADERS
from intop.errors import ConfigurationError, UsageError


def test_six_different_mistakes_are_told_at_once_each_with_its_line_and_place(
    tmp_path: Path,
) -> None:
    text = edited('store = "mine.db"', "seed = -1")
    text = edited("rate_rps = 100\n", "", text)
    text = edited("threads = 2\n", 'threads = "two"\n', text)
    text = edited('lab = "one"', 'lab = "NOT-A-LAB"', text)
    text = edited('hostname = "load.example"', 'hostname = "load.example"\nport = 0', text)
    text = edited('name = "second"', 'colour = "red"', text)
    expected = """\
study.toml:3: study.seed: input should be greater than or equal to 0 (got -1)
study.toml:5: workload.slt.rate_rps: field required
study.toml:7: workload.slt.threads: input should be a valid integer (got 'two')
study.toml:10: cluster.x86: lab name 'NOT-A-LAB': one to nine of a-z, 0-9 and hyphen are allowed, \
the hyphen neither first nor last
study.toml:22: cluster.arm.load_generator.port: input should be greater than or equal to 1 (got 0)
study.toml:34: cluster.arm.backends.1.colour: extra inputs are not permitted (got 'red')
"""
    assert expected.splitlines() == list(problems(tmp_path, text))


URL, FIRST = 'url = "http://10.0.0.2"', 'hostname = "b1.example"'


NO_HEADER = "the header {} is not for a load"
NO_HOST = ":30: cluster.arm.backends.0.hostname: must be the name or address of a host"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("[study]", "[studi]", ": study: field required"),
        ("[study]", "[studi]", ":1: studi: extra inputs are not permitted"),
        (NAME, 'name = "a b"', ":2: study.name: must be a name of letters"),
        (NAME, f'{NAME}\nmax_risk = "none"',
         ":3: study.max_risk: input should be 'low', 'medium' or 'high' (got 'none')"),
        (STORE, 'parameters = ["net.tcp"]', ":3: study.parameters: net.tcp matches no p"),
        (STORE, "parameters = []", ":3: study.parameters: list should have at least 1"),
        (STORE, 'objective = "p42"', ":3: study.objective: input should be 'p50', 'p75'"),
        (SLT, "[workload.web]",
         ':5: workload.web: needs kind = "slt" (static files) or "dlt" (pages made on request)'),
        (SLT, "[workload.Web]", ":5: workload.Web: a workload's name has 1 to 20 of a-z"),
        (SLT, "[workload.all]", ":5: workload.all: a workload's name has 1 to 20 of a-z"),
        (SLT, '[workload.slt]\nkind = "dlt"', ":5: workload.slt: kind must be slt, as its name"),
        (SLT, f"{SLT}\ntuned = false", ": workload: none of them is tuned: take tuned = false"),
        (SLT, f'{SLT}\nscript = "slt.lua"', ":5: workload.slt: script: slt.lua is one of intop's"),
        (SLT, f'{SLT}\nscript = "my.lua"', ":5: workload.slt: script: there is no file "),
        (SLT, f'{SLT}\npaths = {{ "/a" = 0 }}',
         ":6: workload.slt.paths: /a: its weight must be 1 to 1000, not 0"),
        (SLT, f'{SLT}\npaths = {{ "a" = 1 }}', ":6: workload.slt.paths: a path begins with /"),
        (SLT, "[workload.dlt]\npaths = ['/a']", ":6: workload.dlt.paths: dlt asks for the clu"),
        (STORE, 'load_tool = "wrk"',
         f":3: study.load_tool: {MUST} 'auto', 'engine' or 'wrk2' (got 'wrk')"),
        ("connections = 8", "connections = 0", f":7: workload.slt.connections: {AT_LEAST} 1 (got"),
        ("threads = 2", "threads = 0", f":8: workload.slt.threads: {AT_LEAST} 1 (got 0)"),
        (DURATION, "duration_s = 0",
         ":9: workload.slt.duration_s: input should be greater than or equal to 1"),
        (DURATION, f'{DURATION}\npaths = ["a b"]', ":10: workload.slt.paths.0: a path begins"),
        ("[cluster.x86]", "[cluster.riscv]",
         f":11: cluster.riscv: {MUST} 'x86', 'arm', 'native' or 'other' (got 'riscv')"),
        ("[cluster.x86]", "[cluster]\nx86 = []\n[nothing]",
         ":12: cluster.x86.list[dict[str,any]]: list should have at least 1 item"),
        (LAB, f"{LAB}\noptional = 1.5", ":13: cluster.x86.optional: input should be a"),
        (LINK, "link = { }",
         ":13: cluster.x86.link: give it a rate_mbit, a delay_ms or a loss_percent"),
        (LINK, "link = { delay_ms = 1, limit_kb = 20 }",
         ":11: cluster.x86: link: burst_kb and limit_kb belong to a rate_mbit"),
        (LINK, "link = { rate_mbit = 9, delay_ms = 1, burst_kb = 20 }",
         ":11: cluster.x86: link: burst_kb belongs to a rate_mbit without delay"),
        (LINK, "link = { rate_mbit = 9, seed = 2 }",
         ":11: cluster.x86: link: seed belongs to a loss or jitter"),
        (LINK, "link = { loss_percent = 100 }",
         ":13: cluster.x86.link.loss_percent: input should be less than 100 (got 100)"),
        (LINK, "link = { rate_mbit = -1 }",
         ":13: cluster.x86.link.rate_mbit: input should be greater than 0 (got -1)"),
        (URL, 'url = "http://10.0.0.2/x"', ":16: cluster.arm.url: must be http://HOST:PORT"),
        (FIRST, 'hostname = "-oProxyCommand=x"', NO_HOST),
        (FIRST, 'hostname = "b1$(id)"', NO_HOST),
        (SUDO, f'{SUDO}\nuser = "me;id"',
         ":27: cluster.arm.load_balancer.user: must be a user's name"),
        (SUDO, 'sudo = "aks"',
         ":26: cluster.arm.load_balancer.sudo: input should be False, True, 'ask' or 'doas'"),
        ('name = "second"', 'name = "b1.example"',
         ":15: cluster.arm: two hosts are called b1.example: give each a name"),
        (SUDO, f'{SUDO}\nload_cpus = "1"',
         ":15: cluster.arm: load_cpus: only load generators send a load"),
        (LAB, f'{LAB}\nload_cpus = "1-"', ":13: cluster.x86.load_cpus: must be processors as"),
        (SUDO, f"{SUDO}\nlease_s = 1",
         f":27: cluster.arm.load_balancer.lease_s: {AT_LEAST} 2 (got 1)"),
        (SUDO, f'{SUDO}\nstate_dir = "state"',
         ":27: cluster.arm.load_balancer.state_dir: must be a folder's path"),
        (LINK, "link = { delay_ms = -1 }", f":13: cluster.x86.link.delay_ms: {AT_LEAST} 0 (got"),
        (LINK, "link = { rate_mbit = 1, burst_kb = 0 }",
         f":13: cluster.x86.link.burst_kb: {AT_LEAST} 1 (got 0)"),
        (LAB, f"{LAB}\nupstream_keepalive = -1",
         f":13: cluster.x86.upstream_keepalive: {AT_LEAST} 0 (got -1)"),
        (LAB, f"{LAB}\nbacklog = 0", f":13: cluster.x86.backlog: {AT_LEAST} 1 (got 0)"),
        (LAB, f"{LAB}\nworkers = 0", f":13: cluster.x86.workers: {AT_LEAST} 1 (got 0)"),
        (LAB, f"{LAB}\nproxy_buffers = 2", f":13: cluster.x86.proxy_buffers: {AT_LEAST} 3 (got 2)"),
        (LAB, f"{LAB}\nsndbuf_kb = 5000", ":13: cluster.x86.sndbuf_kb: input should be less than"),
        (LAB, f'{LAB}\nclients = [{{ name = "a", share = 0 }}]',
         f":13: cluster.x86.clients.0.share: {MUST} greater than 0 (got 0)"),
        (LAB, f'{LAB}\nname = "two"', ":13: cluster.x86.name: extra inputs are not permitted (got"),
        (SUDO, f'{SUDO}\nshare = 0.5', ":27: cluster.arm.load_balancer.share: extra inputs are"),
        (SLT, f'{SLT}\nonly_path = "/a"', ":6: workload.slt.only_path: extra inputs are not"),
        (SLT, f'{SLT}\narrivals = "closed"',
         f":6: workload.slt.arrivals: {MUST} 'constant', 'poisson' or 'recorded' (got 'closed')"),
        (STORE, "store = 2026-11-27", ":3: study.store: is a date or a time: write it in quotes"),
    ],
)  # fmt: skip
def test_a_mistake_has_its_place(tmp_path: Path, old: str, new: str, expected: str) -> None:
    result = problems(tmp_path, edited(old, new))
    assert any(problem.startswith(f"study.toml{expected}") for problem in result), result


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            'arrivals = "bursts"',
            f"arrivals: {MUST} 'constant', 'poisson' or 'recorded' (got 'bursts')",
        ),
        ('check = "all"', f"check: {MUST} 'content', 'length' or 'status' (got 'all')"),
        ("requests_per_connection = 0.5", f"requests_per_connection: {AT_LEAST} 1 (got 0.5)"),
        ("requests_per_connection = nan", "requests_per_connection: must be a number, not nan"),
        ('lifetimes = "long"', f"lifetimes: {MUST} 'fixed' or 'geometric' (got 'long')"),
        ("think_ms = -1", f"think_ms: {AT_LEAST} 0 (got -1)"),
        ("think_ms = inf", "think_ms: must be a number, not inf"),
        ("read_kb_per_s = 0", f"read_kb_per_s: {AT_LEAST} 1 (got 0)"),
        ('tls_resume = "perhaps"', f"tls_resume: {MUST} a valid boolean"),
        ('http = "3"', f"http: {MUST} '1.1' or '2' (got '3')"),
        ("http = 2", f"http: {MUST} '1.1' or '2' (got 2)"),
        ("streams_per_connection = 0", f"streams_per_connection: {AT_LEAST} 1 (got 0)"),
        ("streams_per_connection = 1001", "streams_per_connection: input should be less than or"),
        ('headers = ["bad"]', "headers.0: a header is 'Name: value' in printable ASCII"),
        ('headers = ["A: b", "A : b"]', "headers.1: a header is 'Name: value' in printable ASCII"),
        ('headers = ["A: b\\r\\nHost: evil"]', "headers.0: has a text with the control character"),
        ('headers = ["A: b\\n"]', "headers.0: a header is 'Name: value' in printable ASCII"),
        ('headers = ["Ä: b"]', "headers.0: a header is 'Name: value' in printable ASCII"),
        ('headers = ["A:  "]', "headers.0: the header A has no value"),
        ('headers = ["Content-Length: 5"]', f"headers.0: {NO_HEADER.format('Content-Length')}"),
        (
            'headers = ["Connection: close"]',
            f"headers.0: {NO_HEADER.format('Connection')}: the",
        ),
        ('headers = ["expect: 100-continue"]', f"headers.0: {NO_HEADER.format('expect')}"),
        ('headers = [":path: /x"]', "headers.0: :path: is a pseudo-header of HTTP/2: the load"),
        ('method = "get"', "method: a method has 1 to 20 of A-Z"),
        ('method = "GET /"', "method: a method has 1 to 20 of A-Z"),
        (
            'method = "CONNECT"',
            "method: the method CONNECT is not for a load: it asks for",
        ),
        ('method = "TRACE"', "method: the method TRACE is not for a load"),
        ('method = "PRI"', "method: the method PRI is not for a load"),
        ("body_bytes = -1", f"body_bytes: {AT_LEAST} 0 (got -1)"),
        ("body_bytes = 1.5", f"body_bytes: {MUST} a valid integer"),
        ('source = "nowhere"', "source: value is not a valid IPv4 or IPv6 address"),
        ('source = "192.0.2.1; id"', "source: value is not a valid IPv4 or IPv6 address"),
        ("timeout_s = 0", f"timeout_s: {AT_LEAST} 1 (got 0)"),
        ("clients = 5", "clients: "),
        ("client = []", "client: extra inputs are not permitted"),
    ],
)
def test_a_mistake_in_the_load_has_its_place(tmp_path: Path, line: str, expected: str) -> None:
    (result,) = problems(tmp_path, edited(DURATION, f"{DURATION}\n{line}"))
    assert result.startswith(f"study.toml:10: workload.slt.{expected}")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("streams_per_connection = 2", 'streams_per_connection is for http = "2"'),
        ('headers = ["Host: a", "A: b", "host: b"]', "headers: host stands there twice, and the"),
        ('headers = ["Cookie: a", "Cookie: b"]', "headers: cookie stands there twice"),
        ('method = "HEAD"\nbody_bytes = 5', "body_bytes: a HEAD request has no body"),
    ],
)
def test_what_does_not_fit_together_is_said(tmp_path: Path, lines: str, expected: str) -> None:
    (result,) = problems(tmp_path, edited(DURATION, f"{DURATION}\n{lines}"))
    assert result.startswith(f"study.toml:5: workload.slt: {expected}")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("share = 0.2", "share = 0.1",
         "5: workload.slt: the shares of its clients add up to 0.9, not to 1"),
        ("share = 0.2", "share = 0.3",
         "5: workload.slt: the shares of its clients add up to 1.1, not to 1"),
        ('name = "bots"', 'name = "people"',
         "5: workload.slt: two classes of clients are called people"),
        ("share = 0.2\n", "", "14: workload.slt.clients.1.share: field required"),
        ('name = "people"\n', "", "10: workload.slt.clients.0.name: field required"),
        ('name = "bots"', 'name = "a b"', "15: workload.slt.clients.1.name: must be 1 to 40"),
        ("share = 0.8", "share = 0", f"12: workload.slt.clients.0.share: {MUST} greater than 0"),
        ("share = 0.8", "share = 1.5", f"12: workload.slt.clients.0.share: {MUST} less than or eq"),
        ("share = 0.8", "share = nan", "12: workload.slt.clients.0.share: must be a number, not"),
        ("connections = 2", "connections = 0", "17: workload.slt.clients.1.connections: input sho"),
        ("think_ms = 20", "think_ms = -20", f"13: workload.slt.clients.0.think_ms: {AT_LEAST} 0"),
        ("think_ms = 20", "rate_rps = 20", "13: workload.slt.clients.0.rate_rps: extra inputs"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_class_of_clients_has_its_place(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    (result,) = problems(tmp_path, with_classes(old, new))
    assert result.startswith(f"study.toml:{expected}")


def test_what_all_classes_have_is_said_in_each_of_them(tmp_path: Path) -> None:
    text = edited(DURATION, f'{DURATION}\nthink_ms = 5\nmethod = "POST"\n{CLASSES}')
    expected = (
        "5: workload.slt: method, think_ms: there are [[...clients]], so say it in each of th"
    )
    (result,) = problems(tmp_path, text)
    assert result.startswith(f"study.toml:{expected}")


BOTH = f'{GENERATOR}name = "first"\n\n{GENERATORS}'


@pytest.mark.parametrize("generators", ["", BOTH], ids=["none", "both"])
def test_a_cluster_has_one_generator_or_several(tmp_path: Path, generators: str) -> None:
    (result,) = problems(tmp_path, edited(GENERATOR, generators))
    expected = "give it a load_generator, or [[...load_generators]] where several share the load"
    assert result == f"study.toml:15: cluster.arm: {expected}"


def test_generators_have_names_of_their_own(tmp_path: Path) -> None:
    text = edited(GENERATOR, edited("load-2.example", "load.example", GENERATORS))
    assert study(tmp_path, text).clusters["arm"]
    (result,) = problems(tmp_path, edited('name = "more"\n', "", text))
    assert "15: cluster.arm: two hosts are called load.example: give each a name" in result


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("keep = 0", "6: budget.keep: in"),
        ("max_lag = 0", "6: budget.max_lag: input should be greater than 0"),
        ("max_lag = 1.5", "6: budget.max_lag: input should be less than or equal to 1"),
        ("kep = 1", "6: budget.kep: extra"),
        ("judge_looks = 0", f"6: budget.judge_looks: {AT_LEAST} 1"),
        ("replicate_trials = -1", f"6: budget.replicate_trials: {AT_LEAST} 0"),
        ("max_foreign_cores = 0", "6: budget.max_foreign_cores: input should be greater than 0"),
        ("max_steal_cores = 0", "6: budget.max_steal_cores: input should be greater than 0"),
        ("max_steal = 1", "6: budget.max_steal: input should be less than 1"),
        ("prune_factor = 1", "5: budget: prune_factor (1) must be more than 1, or 0 to prune none"),
        ("pilot_trials = 2", f"6: budget.pilot_trials: {AT_LEAST} 3"),
        ("pilot_max_s = 1", f"6: budget.pilot_max_s: {AT_LEAST} 2"),
        ("pilot_resolution = 1.0", "6: budget.pilot_resolution: input should be greater than 1"),
        ("trim_rounds = 1", "5: budget: trim_rounds (1) must be 2 or more"),
        ("explain_rounds = 1", "5: budget: explain_rounds (1) must be 2 or more"),
        # A population is what every algorithm takes.
        ("population = 4", f"6: budget.population: {AT_LEAST} 5"),
    ],
)
def test_a_mistake_in_the_budget_has_its_place(tmp_path: Path, line: str, expected: str) -> None:
    (result,) = problems(tmp_path, with_budget(line))
    assert result.startswith(f"study.toml:{expected}")


def test_a_catalogue_that_is_not_there_is_named(tmp_path: Path) -> None:
    (result,) = problems(tmp_path, edited(STORE, 'catalogue = "nosuch.toml"'))
    assert result.startswith("nosuch.toml: can't be read: No such file or directory")


def test_native_beside_the_same_architecture_is_ambiguous(tmp_path: Path) -> None:
    for name, arch in (("native", native_arch()), ("other", other_arch())):
        twice = f'\n[cluster.{name}]\nlab = "two"\n[cluster.{arch}]\nlab = "one"\n'
        (result,) = problems(tmp_path, HEAD + twice)
        assert f"cluster.{arch}: it means {arch} here, which stands there already" in result


@pytest.mark.parametrize("text", ["", "study = 5\nworkload = 5\ncluster = 5\n", "x = 1\n"])
def test_files_of_another_shape_are_told_not_crashed_on(tmp_path: Path, text: str) -> None:
    result = problems(tmp_path, text)
    for place in ("study", "workload", "cluster"):
        assert any(re.search(rf": {place}: ", problem) for problem in result)


def test_a_file_that_is_not_toml_is_told_with_the_line(tmp_path: Path) -> None:
    (result,) = problems(tmp_path, "[study]\nname = mine\n")
    assert result.startswith("study.toml: is not TOML: ")
    assert "line 2" in result


def test_a_file_that_is_not_text_is_told(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="is not TOML"):
        load_study(path)


@pytest.mark.parametrize(
    ("name", "why"), [("nosuch.toml", "No such file or directory"), ("", "Is a directory")]
)
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=f"can't be read: {why}"):
        load_study(tmp_path / name)


def test_a_wrong_configuration_is_bad_usage() -> None:
    assert issubclass(ConfigurationError, UsageError)
    assert ConfigurationError.exit_code == 2


@pytest.mark.parametrize("http", ["1.1", "2"])
@pytest.mark.parametrize("name", sorted(REFUSED_HEADERS))
def test_a_header_that_the_load_would_break_at_is_refused_in_any_spelling(
    tmp_path: Path, name: str, http: str
) -> None:
    for spelled in (name, name.title(), name.upper()):
        lines = f'http = "{http}"\nheaders = ["A: b", "{spelled}: 5"]'
        (result,) = problems(tmp_path, edited(DURATION, f"{DURATION}\n{lines}"))
        place = "study.toml:11: workload.slt.headers.1"
        assert result.startswith(f"{place}: {NO_HEADER.format(spelled)}: {REFUSED_HEADERS[name]}")


def test_classes_of_clients_are_held_to_the_same(tmp_path: Path) -> None:
    text = with_classes("share = 0.2", 'share = 0.2\nheaders = ["TE: gzip"]')
    (result,) = problems(tmp_path, text)
    assert "clients" in result
    assert f"headers.0: {NO_HEADER.format('TE')}" in result


def test_no_message_names_a_class_of_ours() -> None:
    assert (
        plain("Input should be a dictionary or an instance of Parameter")
        == "input should be a valid table"
    )
