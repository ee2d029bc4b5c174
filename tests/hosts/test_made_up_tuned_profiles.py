"""Made-up profiles: where intop is sure, TuneD's own loader makes exactly the same of them."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from intop.domain.parameter import normalised
from intop.domain.sysctl_lines import canonical_key
from intop.hosts.tuned import Profile, merged
from kit.tuned_loader import Loader, loader

FOLDERS = ["etc/tuned", "usr/lib/tuned"]
NAMES = ["web", "base", "lib"]
HEADS = [
    "[main]",
    "[main]",
    "[sysctl]",
    "[sysctl]",
    "[sysctl]",
    "[more]",
    "[variables]",
    "[DEFAULT]",
]
HEADS = [*HEADS * 2, " [sysctl] # why", "[sysctl", "[vm]", "[scheduler]", "[scheduler]"]
OPTIONS = ["net.a.x", "net.a.x", "net.a.y", "net/a/x", " net.a.x ", "-net.a.x", "x", "net.a.X"]
OPTIONS += ["sched_latency_ns", "sched_rt_runtime_us", "numa_balancing_scan_size_mb"]
VALUES = [
    "1",
    "2 3",
    '"4  5"',
    ">6",
    "<7",
    "${n}",
    "a${n}b${m}",
    "${f:strip:8}",
    "9 # why",
    "9#why",
]
VALUES += [
    "${n}",
    "${n}",
    "${n}",
    "",
    "\\${n}",
    "${unknown}",
    "$",
    "}",
    "1 = 2",
    "${i:PROFILE_DIR}",
    "; 1",
    "'1'",
]
INCLUDES = ["-base", "-lib", "-base , -lib", "web"] * 4 + [
    "base",
    "lib",
    "base,lib",
    "base ; lib",
    "web",
    "nosuch",
    "-nosuch",
    "-base",
    "base,",
]
INCLUDES += ["${f:strip:base}", "${n}", "x/base", ""]
SWITCHES = ["enabled=0", "enabled=1", "enabled=true", "enabled=yes", "enabled=false", "replace=1"]
SWITCHES += ["replace=true", "replace=yes", "type=sysctl", "type=vm", "drop=net.a.x", "priority=-1"]
SWITCHES += ["drop=net.a.x, net.a.y", "priority=5", "uname_regex=x", "devices=x"]
SWITCHES = [*SWITCHES * 2, "priority=z"]
ODD = ["", "# x", "; x", "", "no option", "  continued = 1", "\tnet.a.x = 1", "= 1"]


@st.composite
def profiles(draw: st.DrawFn) -> str:
    """The lines of a tuned.conf."""
    texts: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        head = draw(st.sampled_from(HEADS))
        texts.append(head)
        for _ in range(draw(st.integers(0, 3))):
            kind = draw(st.integers(0, 11))
            if "main" in head:
                texts.append(f"include={draw(st.sampled_from(INCLUDES))}")
            elif "variables" in head:
                name = draw(st.sampled_from(["n", "n", "m", "bad name"]))
                value = draw(st.sampled_from(VALUES))
                file = draw(st.sampled_from(["/nosuch/file", "${i:PROFILE_DIR}/variables"]))
                texts.append(f"include={file}" if kind < 4 else f"{name} = {value}")
            elif kind < 3:
                texts.append(draw(st.sampled_from(SWITCHES)))
            elif kind == 3:
                texts.append(draw(st.sampled_from(ODD)))
            else:
                option, value = draw(st.sampled_from(OPTIONS)), draw(st.sampled_from(VALUES))
                texts.append(f"{option}{draw(st.sampled_from(['=', ' = ']))}{value}")
    return "".join(f"{text}\n" for text in texts)


@pytest.fixture(scope="module")
def tuned() -> Iterator[Loader]:
    with loader() as running:
        yield running


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tuned")


def check(result: Profile, sections: list[tuple[str, list[list[str]]]] | None) -> str:
    """Compare what intop is sure of with what TuneD sets; return which of the two that is."""
    if sections is None:
        assert result.unknown or (result.problems and not result.settings)
        return "TuneD fails"
    expected = [
        (canonical_key(option), normalised(value))
        for _, options in sections
        for option, value in options
        if "." in option or "/" in option
    ]
    if result.unknown:
        assert all(setting.doubt for setting in result.settings)
        return "not known"
    assert result.problems == ()
    assert result.sets_sysctls == any(kind == "sysctl" for kind, _ in sections)
    assert [key for key, _ in expected] == [setting.key for setting in result.settings]
    for setting, (_, value) in zip(result.settings, expected, strict=True):
        assert setting.doubt or value == setting.value
    return "understood" if expected else "nothing is set"


@settings(
    max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    files=st.dictionaries(
        st.tuples(st.sampled_from(FOLDERS), st.sampled_from(NAMES)), profiles(), max_size=4
    ),
    web=profiles(),
    active=st.sampled_from(["web", "web", "web base", "base web", "we$b web", "-web"]),
)
def test_tuned_makes_of_profiles_what_we_are_sure_of(
    tuned: Loader, root: Path, files: dict[tuple[str, str], str], web: str, active: str
) -> None:
    shutil.rmtree(root)
    texts = {("etc/tuned", "web"): web} | files
    for (folder, name), text in texts.items():
        path = root / folder / name / "tuned.conf"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.with_name("variables").write_text("n = 8\nm = ${n}9\n")
    (root / "etc/tuned/active_profile").write_text(active)
    lines = {
        str(root / folder / name / "tuned.conf"): text.split("\n")[:-1]
        for folder in FOLDERS
        for (of, name), text in texts.items()
        if of == folder
    }
    event(check(merged(active.split(), lines), tuned.sections(root)))


def test_the_profiles_that_come_with_tuned_are_read_as_tuned_reads_them(
    tuned: Loader, tmp_path: Path
) -> None:
    shipped = Path("/usr/lib/tuned")
    shutil.copytree(shipped, tmp_path / "usr/lib/tuned")
    (tmp_path / "etc/tuned").mkdir(parents=True)
    names = sorted(path.parent.name for path in shipped.glob("*/tuned.conf"))
    assert {"openshift", "throughput-performance", "virtual-guest"} <= set(names)
    lines = {
        str(tmp_path / "usr/lib/tuned" / name / "tuned.conf"): (shipped / name / "tuned.conf")
        .read_text()
        .split("\n")[:-1]
        for name in names
    }
    kinds = {}
    for name in names:
        (tmp_path / "etc/tuned/active_profile").write_text(name)
        kinds[name] = check(merged([name], lines), tuned.sections(tmp_path))
    assert (kinds["openshift"], kinds["network-latency"]) == ("not known", "understood")
