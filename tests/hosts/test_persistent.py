"""What sets sysctls on a host by itself, read from real files below a root."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from builders.damage import anything, damaged
from intop.domain.persistent import Persistent
from intop.errors import CommandError
from intop.hosts.persistent import LONGEST_VALUE, MOST_LINES, parse_persistent, read_persistent
from kit.local_host import LocalHost, RawHost

KEY = "net.core.somaxconn"
OURS = "/etc/sysctl.d/99-zz-intop.conf"
SYSTEMD = {"run/systemd/system/units": ""}


def written(root: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def read(root: Path, files: Mapping[str, str] | None = None) -> Persistent:
    host = LocalHost()
    host.address = replace(host.address, config_root=str(written(root, files or {})))
    return read_persistent(host)


def said(result: Persistent, root: Path) -> list[str]:
    """Value and place of each setting, with the root left out."""
    return [f"{s.value} {s.place.replace(str(root), '')}" for s in result.settings]


def won(result: Persistent, root: Path, key: str = KEY) -> str | None:
    winner = result.winner(key)
    return winner and f"{winner.value} {winner.place.replace(str(root), '')}"


def conf(value: object, key: str = KEY) -> str:
    return f"{key} = {value}\n"


# Files of sysctl.d --------------------------------------------------------------------------------


def test_a_host_without_any_file_sets_nothing(tmp_path: Path) -> None:
    assert Persistent() == read(tmp_path)


def test_files_take_effect_by_name_wherever_they_are(tmp_path: Path) -> None:
    files = {
        "etc/sysctl.d/20-b.conf": conf(1),
        "usr/lib/sysctl.d/30-c.conf": conf(2),
        "run/sysctl.d/10-a.conf": conf(3),
        "usr/local/lib/sysctl.d/25-x.conf": conf(4),
        "etc/sysctl.d/README": conf(5),
        "etc/sysctl.d/.hidden.conf": conf(6),
    }
    result = read(tmp_path, SYSTEMD | files)
    assert said(result, tmp_path) == [
        "3 /run/sysctl.d/10-a.conf:1",
        "1 /etc/sysctl.d/20-b.conf:1",
        "4 /usr/local/lib/sysctl.d/25-x.conf:1",
        "2 /usr/lib/sysctl.d/30-c.conf:1",
    ]


def test_a_name_in_an_earlier_folder_masks_the_later_ones(tmp_path: Path) -> None:
    folders = ["lib", "usr/lib", "usr/local/lib", "run", "etc"]
    for number, folder in enumerate(folders):
        result = read(tmp_path, {f"{folder}/sysctl.d/50-x.conf": conf(number)})
        assert said(result, tmp_path) == [f"{number} /{folder}/sysctl.d/50-x.conf:1"]


def test_an_empty_file_and_a_link_to_null_mask_too(tmp_path: Path) -> None:
    files = {"usr/lib/sysctl.d/50-a.conf": conf(1), "usr/lib/sysctl.d/50-b.conf": conf(2)}
    written(tmp_path, files | {"etc/sysctl.d/50-a.conf": ""})
    (tmp_path / "etc/sysctl.d/50-b.conf").symlink_to("/dev/null")
    result = read(tmp_path)
    assert result.settings == ()
    assert {str(tmp_path / f"etc/sysctl.d/50-{name}.conf") for name in "ab"} <= set(result.files)


def test_what_is_no_file_masks_a_later_one_and_is_never_opened(tmp_path: Path) -> None:
    """systemd and procps go by names alone: "Skipping overridden file"."""
    names = ("link", "pipe", "folder", "other")
    later = {f"usr/lib/sysctl.d/50-{name}.conf": conf(1) for name in names}
    written(tmp_path, {**later, "etc/sysctl.d/x": ""})
    os.mkfifo(tmp_path / "etc/sysctl.d/50-pipe.conf")
    (tmp_path / "etc/sysctl.d/50-folder.conf").mkdir()
    (tmp_path / "etc/sysctl.d/50-link.conf").symlink_to("nowhere")
    (tmp_path / "etc/sysctl.d/a\nend\t.conf").write_text(conf(2))
    for files in ({}, SYSTEMD):
        assert said(read(tmp_path, files), tmp_path) == ["1 /usr/lib/sysctl.d/50-other.conf:1"]


@pytest.mark.parametrize("name", [".1.conf", ".conf"])
def test_a_hidden_file_is_read_by_procps_only(tmp_path: Path, name: str) -> None:
    assert [s.value for s in read(tmp_path, {f"etc/sysctl.d/{name}": conf(1)}).settings] == ["1"]
    assert read(tmp_path, SYSTEMD).settings == ()


def test_lines_are_comments_assignments_or_nothing(tmp_path: Path) -> None:
    text = (
        "# net.a.hash = 1\n ; net.a.semicolon = 2\n\n  net.a.blanks   =   4096  131072\t6291456 \n"
        "net/ipv4/conf/eth0.5/x = 3\n-net.a.lenient=4\nnet.a.equals = a=b\nno assignment\n= 5\n"
        "net.a.empty =\nnet.a.end = 6"
    )
    result = read(tmp_path, {"etc/sysctl.d/1.conf": text})
    assert {s.key: s.value for s in result.settings} == {
        "net.a.blanks": "4096 131072 6291456",
        "net.ipv4.conf.eth0/5.x": "3",
        "net.a.lenient": "4",
        "net.a.equals": "a=b",
        "net.a.empty": "",
        "net.a.end": "6",
    }
    assert [int(s.place.rpartition(":")[2]) for s in result.settings] == [4, 5, 6, 7, 10, 11]


def test_sysctl_conf_is_the_last_to_procps_and_none_to_systemd(tmp_path: Path) -> None:
    files = {"etc/sysctl.conf": conf(1), "etc/sysctl.d/99-zzz.conf": conf(2)}
    result = read(tmp_path, files)
    assert won(result, tmp_path) == "1 /etc/sysctl.conf:1"
    assert [s.value for s in result.after(KEY, OURS)] == ["2", "1"]
    assert result.reloaded(KEY, "3", ()) is None
    result = read(tmp_path, SYSTEMD)
    assert won(result, tmp_path) == "2 /etc/sysctl.d/99-zzz.conf:1"
    assert [s.value for s in result.after(KEY, OURS)] == ["2"]
    reloaded = result.reloaded(KEY, "3", ("1",))
    assert reloaded is not None
    assert reloaded.value == "1"


def test_debians_link_makes_systemd_read_sysctl_conf(tmp_path: Path) -> None:
    written(tmp_path, SYSTEMD | {"etc/sysctl.conf": conf(1), "etc/sysctl.d/50-x.conf": conf(2)})
    (tmp_path / "etc/sysctl.d/99-sysctl.conf").symlink_to("../sysctl.conf")
    result = read(tmp_path)
    assert won(result, tmp_path) == "1 /etc/sysctl.d/99-sysctl.conf:1"
    assert result.after(KEY, OURS) == ()


def test_a_glob_sets_what_no_line_names(tmp_path: Path) -> None:
    text = conf(1, "net.ipv4.conf.*.x") + conf(2, "net/ipv4/conf/all/x") + "-net.ipv4.conf.lo.x\n"
    late = {"etc/sysctl.d/2.conf": conf(3, "net.ipv4.conf.*.x")}
    result = read(tmp_path, SYSTEMD | {"etc/sysctl.d/1.conf": text} | late)
    values = {name: result.winner(f"net.ipv4.conf.{name}.x") for name in ("all", "lo", "eth0")}
    assert {n: w and w.value for n, w in values.items()} == {"all": "2", "lo": None, "eth0": "3"}
    assert result.winner("net.ipv4.conf.a.b.x") is None


def test_an_exclusion_takes_an_assignment_back_where_systemd_reads(tmp_path: Path) -> None:
    files = {"etc/sysctl.d/1.conf": conf(1), "etc/sysctl.d/2.conf": f"-{KEY}\n"}
    assert won(read(tmp_path, files), tmp_path) == "1 /etc/sysctl.d/1.conf:1"
    result = read(tmp_path, SYSTEMD)
    assert won(result, tmp_path) is None
    fate = result.fate(KEY, "5", "/etc/sysctl.d/1.conf", ())
    assert fate is not None
    assert (fate.effect, fate.value) == ("drops", None)
    assert won(read(tmp_path, {"etc/sysctl.d/3.conf": conf(3)}), tmp_path) is not None


# TuneD --------------------------------------------------------------------------------------------

PROFILE = {"etc/tuned/active_profile": "web\n", "etc/tuned/web/tuned.conf": f"[sysctl]\n{conf(7)}"}
NO_REREADING = {"etc/tuned/tuned-main.conf": "daemon = 1\nreapply_sysctl = 0 # ours win\n"}


def test_a_profile_is_named_with_its_line(tmp_path: Path) -> None:
    place = "TuneD profile web, /etc/tuned/web/tuned.conf:2"
    assert won(read(tmp_path, SYSTEMD | PROFILE), tmp_path) == f"7 {place}"
    assert str(tmp_path / "etc/tuned/web/tuned.conf") == read(tmp_path).settings[0].file


def test_files_win_over_tuned_which_reads_them_again(tmp_path: Path) -> None:
    files = {
        "etc/sysctl.d/50-x.conf": conf(1),
        "usr/lib/sysctl.d/99-a.conf": conf(2),
        "etc/sysctl.d/51-x.conf": f"-{conf(3)}net.core.*=9\n",
    }
    result = read(tmp_path, SYSTEMD | PROFILE | files)
    # Of a folder below usr, TuneD knows nothing; nor of a line with a hyphen.
    assert [s.value for s in result.settings] == ["1", "3", "9", "2", "7", "1"]
    assert won(result, tmp_path) == "1 /etc/sysctl.d/50-x.conf:1"
    assert result.after(KEY, OURS) == ()
    assert [s.value for s in result.after(KEY, "/etc/sysctl.d/10-a.conf")] == ["1"]


def test_tuned_wins_over_files_that_it_does_not_read_again(tmp_path: Path) -> None:
    files = {"etc/sysctl.d/50-x.conf": conf(1), "etc/sysctl.conf": conf(2)}
    result = read(tmp_path, SYSTEMD | PROFILE | NO_REREADING | files)
    assert [s.value for s in result.settings] == ["1", "7"]
    assert [s.value for s in result.after(KEY, OURS)] == ["7"]
    assert result.after(KEY, OURS)[0].is_tuned


def test_tuned_reads_sysctl_conf_at_the_end(tmp_path: Path) -> None:
    files = {"etc/sysctl.d/50-x.conf": conf(1), "etc/sysctl.conf": conf(2)}
    result = read(tmp_path, SYSTEMD | PROFILE | files)
    assert [s.value for s in result.settings] == ["1", "7", "1", "2"]
    assert [s.value for s in result.after(KEY, OURS)] == ["2"]


def test_to_tuned_the_folder_below_run_hides_that_below_etc(tmp_path: Path) -> None:
    files = {"etc/sysctl.d/50-x.conf": conf(1), "run/sysctl.d/50-x.conf": conf(2)}
    result = read(tmp_path, SYSTEMD | PROFILE | files)
    assert [s.value for s in result.settings] == ["1", "7", "2"]


def test_a_profile_overrides_what_it_includes(tmp_path: Path) -> None:
    files = {
        "etc/tuned/active_profile": "web extra\n",
        "etc/tuned/web/tuned.conf": "[main]\nsummary=x\ninclude=base, lib\n[sysctl]\nnet.a.x=web\n",
        "usr/lib/tuned/base/tuned.conf": "[sysctl]\nnet.a.x=base\nnet.a.y=base # why\n",
        "usr/lib/tuned/profiles/lib/tuned.conf": "[m]\ntype=sysctl\nnet.a.y=lib\nnet/a/z=lib\n",
        "etc/tuned/profiles/extra/tuned.conf": '[sysctl]\n; \nnet.a.w="4 5  6"\n[vm]\nnet.a.v=1\n',
        "usr/lib/tuned/other/tuned.conf": "[sysctl]\nnet.a.u=other\n",
    }
    result = read(tmp_path, files)
    values = {key: result.winner(f"net.a.{key}") for key in "xyzwvu"}
    assert {key: setting and setting.value for key, setting in values.items()} == {
        "x": "web", "y": "lib", "z": "lib", "w": "4 5 6", "v": None, "u": None,
    }  # fmt: skip


def test_a_profile_may_include_its_namesake_and_replace_a_section(tmp_path: Path) -> None:
    files = PROFILE | {
        "etc/tuned/web/tuned.conf": "[main]\ninclude=web\n[sysctl]\nreplace=1\nnet.a.x=1\n",
        "usr/lib/tuned/web/tuned.conf": "[main]\ninclude=web\n[sysctl]\nnet.a.y=2\n[sysctl]\n",
    }
    assert [s.key for s in read(tmp_path, files).settings] == ["net.a.x"]


def test_what_only_tuned_evaluates_is_told_as_not_known(tmp_path: Path) -> None:
    """Debian's own openshift has such an include; what it sets itself is still named."""
    include = "${f:virt_check:virtual-guest:throughput-performance}"
    own = f"[main]\ninclude={include}\n[sysctl]\nnet.a.x=>8\n"
    result = read(tmp_path, PROFILE | {"etc/tuned/web/tuned.conf": own})
    assert [s.key for s in result.settings] == ["net.a.x"]
    words = f"TuneD's profile web includes {include}, which only TuneD evaluates"
    assert result.problems == (f"{words}: what else TuneD sets is not known",)
    assert result.unknown == ""  # our file is read again after whatever it is
    assert words == read(tmp_path, NO_REREADING).unknown


def test_variables_conditions_and_switches_are_understood_or_not_known(tmp_path: Path) -> None:
    text = (
        "[variables]\nn=5\nm=${n}0\n[sysctl]\nnet.a.x=${m}\nnet.a.y=${other}\nnet.a.z=${f:exec:x}\n"
        "[off]\ntype=sysctl\nenabled=0\nnet.a.w=1\n[here]\ntype=sysctl\nuname_regex=x\nnet.a.v=1\n"
    )
    result = read(tmp_path, PROFILE | {"etc/tuned/web/tuned.conf": text})
    assert [(s.key, s.value, s.doubt) for s in result.settings] == [
        ("net.a.x", "50", ""),
        ("net.a.y", "${other}", "only TuneD evaluates that"),
        ("net.a.z", "${f:exec:x}", "only TuneD evaluates that"),
        ("net.a.v", "1", "TuneD sets it on some machines only"),
    ]


@pytest.mark.parametrize(
    ("value", "rereads"),
    [("0", False), ("no", False), ("Off", False), ("on", True), ("yes # x", True), ("1", True)],
)
def test_a_rereading_is_off_where_tuned_takes_the_word_for_false(
    tmp_path: Path, value: str, rereads: bool
) -> None:
    """As its GlobalConfig in TuneD 2.20 has it."""
    main = {"etc/tuned/tuned-main.conf": f"reapply_sysctl = {value}\n"}
    assert rereads == read(tmp_path, PROFILE | main).rereads


def test_a_file_of_variables_may_have_those_before_it(tmp_path: Path) -> None:
    text = (
        "[variables]\nn=1\ninclude=/etc/tuned/web-variables.conf\no=3\n"
        "[sysctl]\nnet.a.x=${n}\nnet.a.y=${o}\n"
    )
    result = read(tmp_path, PROFILE | {"etc/tuned/web/tuned.conf": text})
    assert [(s.value, s.doubt) for s in result.settings] == [
        ("${n}", "only TuneD evaluates that"),
        ("3", ""),
    ]


def test_sections_of_other_plugins_of_tuned_set_keys_too(tmp_path: Path) -> None:
    """Those after the sysctls win even over files that TuneD reads again."""
    scheduler, latency = "kernel.sched_migration_cost_ns", "kernel.sched_latency_ns"
    text = (
        "[first]\ntype=scheduler\nsched_latency_ns=5\n"
        "[sysctl]\nnet.a.x=1\n[scheduler]\nsched_migration_cost_ns=>500\nisolated_cores=1\n"
        "[vm]\ndirty_bytes=40 %\ndirty_background_ratio=7\ntransparent_hugepages=never\n"
    )
    own = {"etc/tuned/web/tuned.conf": text}
    result = read(tmp_path, SYSTEMD | PROFILE | own)
    doubt = "some versions of TuneD set it, others don't"
    assert [
        (latency, "5", ""),
        ("net.a.x", "1", ""),
        (scheduler, ">500", ""),
        ("vm.dirty_ratio", "40", doubt),
        ("vm.dirty_background_ratio", "7", doubt),
    ] == [(s.key, s.value, s.doubt) for s in result.settings]
    fate = result.fate(scheduler, "100", OURS, ())
    assert fate is not None
    assert fate.setting.is_tuned
    assert result.fate(scheduler, "900", OURS, ()) is None
    assert result.fate(latency, "6", OURS, ()) is None
    assert read(tmp_path, NO_REREADING).fate(latency, "6", OURS, ()) is not None


def test_a_profile_that_tuned_can_not_read_sets_nothing(tmp_path: Path) -> None:
    result = read(tmp_path, PROFILE | {"etc/tuned/web/tuned.conf": f"[sysctl]\n{conf(7)}oops\n"})
    assert result.settings == ()
    (problem,) = result.problems
    assert "is no profile that TuneD can read" in problem
    assert problem.endswith("so TuneD sets nothing")


def test_a_missing_profile_makes_tuned_set_nothing(tmp_path: Path) -> None:
    result = read(tmp_path, PROFILE | {"etc/tuned/active_profile": "web gone\n"})
    assert result.settings == ()
    assert result.problems == ("TuneD's profile gone is not there, so TuneD sets nothing",)


@pytest.mark.parametrize("active", ["", None])
def test_a_tuned_without_a_profile_sets_nothing(tmp_path: Path, active: str | None) -> None:
    written(tmp_path, PROFILE)
    path = tmp_path / "etc/tuned/active_profile"
    path.unlink() if active is None else path.write_text(active)
    assert Persistent() == read(tmp_path)


# Hostile ------------------------------------------------------------------------------------------

ANSWER = (
    "etc/sysctl.d\t/etc/sysctl.d/1.conf\n>net.a.x = 1\n>\n\nsysctl.conf\t/etc/sysctl.conf\n"
    ">net.a.x = 2\n\nsystemd\t\nactive_profile\t/etc/tuned/active_profile\n>web\n\n"
    "etc/tuned\t/etc/tuned/web/tuned.conf\n>[main]\n>include=web\n>[sysctl]\n>net.a.x=3\n\nend\t\n"
)


@settings(max_examples=40)
@given(anything | damaged(ANSWER))
def test_an_answer_is_read_or_the_host_is_named(text: str) -> None:
    try:
        result = read_persistent(LocalHost(text))
    except CommandError as error:
        message = str(error)
    else:
        assert all(result.winner(setting.key) for setting in result.settings)
        return
    assert message.startswith("lb: what sets its sysctls can't be read")


def test_the_untouched_answer_is_read() -> None:
    result = parse_persistent(ANSWER)
    assert [s.value for s in result.settings] == ["1", "3", "1", "2"]
    with pytest.raises(ValueError, match="ends early"):
        parse_persistent(ANSWER.removesuffix("end\t\n"))


def test_no_content_is_taken_for_another_file(tmp_path: Path) -> None:
    forged = b"end\t\nsystemd\t\netc/sysctl.d\t/x\nnet.a.x = 1\n>net.a.y = 2\n\0\xff\x85 = \x1b\r\n"
    written(tmp_path, {"etc/sysctl.d/1.conf": "", "etc/sysctl.d/2.conf": conf(5)})
    (tmp_path / "etc/sysctl.d/1.conf").write_bytes(forged * 3)
    host = RawHost()
    host.address = replace(host.address, config_root=str(tmp_path))
    result = read_persistent(host)
    assert {"net.a.x", ">net.a.y", KEY} <= {s.key for s in result.settings}
    assert result.settings[-1].value == "5"
    assert result.problems == ()


def test_too_much_of_a_file_is_a_problem_and_not_read(tmp_path: Path) -> None:
    files = {
        "etc/sysctl.d/1.conf": conf(1) * (MOST_LINES + 5),
    }
    result = read(tmp_path, files)
    assert len(result.settings) == MOST_LINES
    (problem,) = result.problems
    assert "/1.conf has more than 10000 lines: " in problem


def test_a_long_line_counts_and_a_value_longer_than_a_page_is_not_known(tmp_path: Path) -> None:
    long = "x" * LONGEST_VALUE
    text = f"# {long}\n{KEY} = {' ' * LONGEST_VALUE}5\n{KEY} = 1024 # {long}\n"
    result = read(tmp_path, SYSTEMD | {"etc/sysctl.d/1.conf": text})
    assert [(s.value, s.doubt) for s in result.settings] == [
        ("5", ""),
        (f"1024 # {'x' * 53}...", "a value of more than 4096 characters"),
    ]
    fate = result.fate(KEY, "7", "/etc/sysctl.d/0.conf", ())
    assert fate is not None
    assert fate.effect == "unknown"
    assert result.problems == ()


def test_profiles_without_end_are_a_problem() -> None:
    text = "active_profile\t/a\n>p0\n" + "".join(
        f"etc/tuned\t/etc/tuned/p{n}/tuned.conf\n>[main]\n>include=p{n + 1}\n" for n in range(500)
    )
    (problem,) = parse_persistent(f"{text}end\t\n").problems
    assert "include each other" in problem


def test_a_root_with_blanks_and_quotes_is_one_folder(tmp_path: Path) -> None:
    root = tmp_path / "it's a $(root)"
    assert won(read(root, {"etc/sysctl.d/1.conf": conf(1)}), root) == "1 /etc/sysctl.d/1.conf:1"
