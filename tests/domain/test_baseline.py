"""What a host can take of a published set of values, and why not the rest."""

from pathlib import Path

import pytest

from builders.testbeds import probe_of
from intop.config.baselines import load_baselines
from intop.config.catalogue import load_catalogue
from intop.domain.baseline import HOST, TUNED, Baseline, Fitted, Refusals, fitted
from intop.domain.parameter import denied
from intop.domain.probing import space_of

CONFIGS = Path(__file__).parents[2] / "configs"
CATALOGUE = load_catalogue(CONFIGS / "parameters.toml")
SHIPPED = load_baselines(CONFIGS / "baselines")
NOT_NGINX = {
    "kernel.printk",
    "net.ipv6.conf.all.use_tempaddr",
    "net.ipv6.conf.default.use_tempaddr",
}
"""Keys that Ubuntu sets, that exist, and that have nothing to do with a web server."""

HAS = {
    "net.core.somaxconn": "4096",
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_sack": "1",
    "net.ipv4.tcp_congestion_control": "cubic",
    "net.ipv4.tcp_available_congestion_control": "reno cubic",
    "net.core.netdev_max_backlog": "1000",
    "net.core.rmem_max": "212992",
    "net.ipv4.ip_local_port_range": "32768 60999",
    "fs.aio-max-nr": "1048576",
    "fs.file-max": "100000",
}


def fit(**values: str) -> Fitted:
    """The values, with __ for a dot in a key, on a host that HAS some."""
    probed = space_of(CATALOGUE.parameters, CATALOGUE.constraints, probe_of(HAS), "medium")
    named = {key.replace("__", "."): value for key, value in values.items()}
    refusals = Refusals().with_one("net.core.somaxconn", "7", "4096")
    baseline = Baseline(name="b", title="t", source="s", values=named)
    return fitted(baseline, probed, refusals, CATALOGUE.former)


def test_what_differs_is_changed_and_what_is_equal_is_not() -> None:
    result = fit(net__core__somaxconn="128", net__ipv4__tcp_sack="1")
    assert result.configuration.values == {"net.core.somaxconn": "128"}
    assert result.already == ("net.ipv4.tcp_sack",)
    assert result.left_out == {}


def test_blanks_and_leading_zeros_make_no_difference() -> None:
    result = fit(net__ipv4__tcp_rmem=" 4096  131072\t06291456 ", net__core__somaxconn="0128")
    assert result.already == ("net.ipv4.tcp_rmem",)
    assert result.configuration.values == {"net.core.somaxconn": "128"}


def test_a_baseline_may_leave_the_range_of_the_search() -> None:
    (parameter,) = [p for p in CATALOGUE.parameters if p.key == "net.core.somaxconn"]
    beyond = parameter.components[0].high + 1
    result = fit(net__core__somaxconn=str(beyond))
    assert {"net.core.somaxconn": str(beyond)} == result.configuration.values


def test_no_baseline_lowers_what_the_host_needs_as_it_is() -> None:
    result = fit(**{"fs__aio-max-nr": "65536"})
    assert result.left_out == {"fs.aio-max-nr": "beyond a hard bound: 65536 is below 1048576"}
    assert fit(**{"fs__aio-max-nr": "2000000"}).configuration.values == {"fs.aio-max-nr": "2000000"}


def test_a_host_that_has_everything_already_is_left_as_it_is() -> None:
    result = fit(net__core__somaxconn="4096", net__ipv4__tcp_sack="1")
    assert result.configuration.is_default
    assert len(result.already) == 2


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("net.ipv4.tcp_syncookies", "0", "on the deny list: without it a SYN flood takes the"),
        ("net.ipv4.conf.all.rp_filter", "0", "on the deny list: protects against forged"),
        ("net.ipv4.tcp_tw_recycle", "1", "no kernel has it since 4.12"),
        ("kernel.printk", "4 4 1 7", "not in the catalogue"),
        ("net.ipv4.tcp_ecn", "0", "this kernel doesn't have it"),
        ("net.ipv4.ip_local_port_range", "1024 65535", "beyond a hard bound: 1024 is below 32768"),
        ("net.core.rmem_max", "900000000000", "beyond a hard bound: 900000000000 is above "),
        ("net.core.default_qdisc", "fq", "not offered: interfaces keep the queueing discipline"),
        ("fs.file-max", "5000000", "its risk is high: max_risk in [study] is medium"),
        ("net.core.somaxconn", "7", "not taken by the kernel: '7' reads back as '4096'"),
        ("net.core.somaxconn", "many", "malformed: 'many' is not 1 whole number(s)"),
        ("net.core.somaxconn", "1 2", "malformed: '1 2' is not 1 whole number(s)"),
        ("net.core.somaxconn", "²", "malformed: '²' is not 1 whole number(s)"),
        ("net.ipv4.tcp_rmem", "4096", "malformed: '4096' is not 3 whole number(s)"),
        ("net.ipv4.tcp_sack", "2", "not offered: '2' is none of 0, 1"),
        ("net.ipv4.tcp_congestion_control", "bic", "not offered: 'bic' is none of reno, cubic"),
    ],
)
def test_what_is_left_out_has_a_reason(key: str, value: str, reason: str) -> None:
    result = fit(**{key.replace(".", "__"): value})
    assert result.configuration.is_default
    assert result.already == ()
    assert [key] == list(result.left_out)
    assert result.left_out[key].startswith(reason)


def test_every_key_is_accounted_for_once() -> None:
    probed = space_of(CATALOGUE.parameters, CATALOGUE.constraints, probe_of(HAS), "medium")
    for baseline in SHIPPED.values():
        result = fitted(baseline, probed)
        parts = [*result.configuration.values, *result.already, *result.left_out]
        assert sorted(baseline.values) == sorted(parts)


# What comes with intop ----------------------------------------------------------------------------


def test_the_sources_of_the_comparison_are_there() -> None:
    four = {"kernel-6.1", "ubuntu-18.04", "web-server-benchmark-2016", "openeuler-25.09"}
    assert four <= SHIPPED.keys()
    assert not {HOST, TUNED} & SHIPPED.keys()


def test_the_blog_on_openeuler_has_all_of_its_kernel_parameters() -> None:
    assert SHIPPED["openeuler-25.09"].values == {
        "fs.file-max": "1000000", "net.core.somaxconn": "65535",
        "net.core.netdev_max_backlog": "65535", "net.ipv4.tcp_max_syn_backlog": "65535",
        "net.ipv4.tcp_fin_timeout": "30", "net.ipv4.tcp_keepalive_time": "1200",
        "net.ipv4.tcp_tw_reuse": "1", "net.ipv4.tcp_tw_recycle": "0",
        "net.core.default_qdisc": "fq", "net.ipv4.tcp_congestion_control": "bbr",
    }  # fmt: skip


def test_the_benchmark_of_2016_has_all_of_its_kernel_parameters() -> None:
    thirty, ten = "30000000 30000000 30000000", "10000000"
    assert {
        "fs.file-max": "5000000", "net.core.netdev_max_backlog": "400000",
        "net.core.optmem_max": ten, "net.core.somaxconn": "100000",
        "net.core.rmem_default": ten, "net.core.rmem_max": ten,
        "net.core.wmem_default": ten, "net.core.wmem_max": ten,
        "net.ipv4.conf.all.rp_filter": "1", "net.ipv4.conf.default.rp_filter": "1",
        "net.ipv4.ip_local_port_range": "1024 65535", "net.ipv4.tcp_congestion_control": "bic",
        "net.ipv4.tcp_ecn": "0", "net.ipv4.tcp_max_syn_backlog": "12000",
        "net.ipv4.tcp_max_tw_buckets": "2000000", "net.ipv4.tcp_mem": thirty,
        "net.ipv4.tcp_rmem": thirty, "net.ipv4.tcp_wmem": thirty, "net.ipv4.tcp_sack": "1",
        "net.ipv4.tcp_syncookies": "0", "net.ipv4.tcp_timestamps": "1",
        "net.ipv4.tcp_tw_recycle": "1", "net.ipv4.tcp_tw_reuse": "1",
    } == SHIPPED["web-server-benchmark-2016"].values  # fmt: skip


@pytest.mark.parametrize("name", SHIPPED)
def test_no_note_doubts_a_value(name: str) -> None:
    """What can't be checked is no baseline."""
    notes = (CONFIGS / "baselines" / f"{name}.toml").read_text()
    doubts = ("could not be", "can't be checked", "not known", "with known values")
    assert [doubt for doubt in doubts if doubt in notes] == []


@pytest.mark.parametrize("name", SHIPPED)
def test_every_key_is_known_denied_gone_or_not_about_nginx(name: str) -> None:
    known = {p.key for p in CATALOGUE.parameters} | CATALOGUE.former.keys() | NOT_NGINX
    assert [key for key in SHIPPED[name].values if key not in known and not denied(key)] == []


@pytest.mark.parametrize("name", SHIPPED)
def test_every_value_fits_the_kind_of_its_parameter(name: str) -> None:
    """On a host that offers all of the catalogue, with other values than any baseline's."""
    has = {
        p.key: " ".join("77" for _ in p.components) if p.is_numeric else p.choices[0]
        for p in CATALOGUE.parameters
    }
    algorithms = next(p for p in CATALOGUE.parameters if p.key.endswith("_congestion_control"))
    has["net.ipv4.tcp_available_congestion_control"] = " ".join(algorithms.choices)
    probed = space_of(CATALOGUE.parameters, (), probe_of(has), "high")
    left_out = fitted(SHIPPED[name], probed).left_out
    wrong = {k: r for k, r in left_out.items() if r.startswith(("malformed", "not offered"))}
    assert wrong == {}
