"""Directives as a file to be merged, and as a play, checked by the real nginx and ansible."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from builders.nginx_files import catalogue
from builders.results import DEPLOYMENT
from intop.deploy.export.ansible import playbook
from intop.deploy.export.nginx import nginx_conf, nginx_text
from intop.domain.cluster import native_arch
from intop.domain.deployment import Change
from intop.domain.nginx.directive import NginxFacts
from intop.errors import UsageError
from kit.golden import Golden
from kit.own_machine import own_machine
from kit.playing import Playing

AT = "2026-11-23T20:00:00+00:00"
HERE = replace(DEPLOYMENT, arch=native_arch())
FACTS = NginxFacts(
    version=(1, 22, 1),
    build=("--with-threads", "--with-http_ssl_module", "--with-http_v2_module"),
    kernel="6.1.0",
    cpus=2,
    page_kib=4,
    nofile=1024,
)
VALUES = {
    "nginx:main.worker_processes": "2",
    "nginx:events.multi_accept": "on",
    "nginx:http.sendfile": "on",
    "nginx:upstream.keepalive": "64",
    "nginx:listen.backlog": "4096",
}
IN_MAIN = {key: VALUES[key] for key in list(VALUES)[:3]}
"""What stands in nginx.conf itself."""


def change(key: str, value: str) -> Change:
    return replace(DEPLOYMENT.changes[0], key=key, value=value, default="1", contribution=None)


def test_it_has_the_blocks_that_the_directives_stand_in(golden: Golden) -> None:
    both = replace(DEPLOYMENT, changes=(*DEPLOYMENT.changes, *(change(*v) for v in VALUES.items())))
    text = nginx_conf(both, catalogue(), FACTS, written_at=AT)
    assert text.startswith("# Written by intop ")
    message = " ".join(text.replace("\n# ", " ").split())
    assert "what this file has is not: " in message
    assert all(f"{key} = {value}" in message for key, value in DEPLOYMENT.values.items())
    bare = "\n".join(line for line in text.splitlines() if line and line[0] != "#")
    assert bare.count("worker_processes 2;") == 1
    golden(bare)


@pytest.mark.parametrize("key", sorted(VALUES))
def test_nginx_takes_it(key: str, tmp_path: Path) -> None:
    """With what it lacks alone: an upstream needs a server, and nginx the block events."""
    result = nginx_text({key: VALUES[key]}, catalogue(), FACTS)
    assert result.unwritten == ()
    text = result.text.replace("upstream backends {", "upstream backends { server 127.0.0.1:1;")
    text += "" if "events {" in text else "events {\n}\n"
    file = tmp_path / "nginx.conf"
    file.write_text(f"pid {tmp_path}/pid; error_log {tmp_path}/log;\n{text}")
    output = subprocess.run(
        ["nginx", "-t", "-p", tmp_path, "-c", file], capture_output=True, text=True, check=False
    )
    assert "syntax is ok" in output.stderr, output.stderr


def test_what_only_changes_a_hosts_own_lines_is_named() -> None:
    deployment = replace(DEPLOYMENT, changes=(change("nginx:http.access_log.buffer", "64"),))
    text = nginx_conf(deployment, catalogue(), FACTS, written_at=AT)
    assert "# Not below, since it only changes what stands already: nginx:http.access_log" in text


def test_a_line_that_may_stand_there_several_times_is_in_no_playbook() -> None:
    deployment = replace(HERE, changes=(change("nginx:http.proxy_http_version", "1.1"),))
    nginx = nginx_text(deployment.directives, catalogue(), FACTS)
    with pytest.raises(UsageError, match="can't set proxy_set_header Connection"):
        playbook(deployment, written_at=AT, nginx=nginx)


def test_without_a_directive_there_is_nothing_to_write() -> None:
    with pytest.raises(UsageError, match="changes no directive of nginx: --format sysctl"):
        nginx_conf(DEPLOYMENT, catalogue(), FACTS, written_at=AT)
    with pytest.raises(UsageError, match=r"doesn't know the directives nginx:http\.x: tune again"):
        nginx_text({"nginx:http.x": "1"}, catalogue(), FACTS)


@pytest.mark.long
def test_ansible(tmp_path: Path) -> None:
    """Set, again without a change, and given back."""
    deployment = replace(HERE, changes=tuple(change(*one) for one in IN_MAIN.items()))
    with own_machine(tmp_path) as machine:
        conf, taken = tmp_path / "nginx.conf", tmp_path / "taken"
        own = "worker_processes 1;\nevents {\n}\nhttp {\n    sendfile off;\n}\n"
        conf.write_text(own)
        conf.chmod(0o640)
        play = Playing(machine, tmp_path)
        nginx = nginx_text(deployment.directives, catalogue(), FACTS)
        text = playbook(deployment, written_at=AT, nginx=nginx)
        play.write(text)
        words = ("-e", f"intop_nginx_conf={conf}", "-e", f"intop_nginx_takes='touch {taken}'")
        _, changes = play(*words)
        assert changes
        assert taken.exists()
        lines = conf.read_text().splitlines()
        assert lines[:3] == ["worker_processes 2;", "events {", "    multi_accept on;"]
        assert "    sendfile on;" in lines
        assert "    sendfile off;" not in lines
        taken.unlink()
        message, changes = play(*words)
        assert changes == 0, message
        assert not taken.exists()
        play(*words, "-e", "intop_state=absent")
        assert (own, 0o640) == (conf.read_text(), conf.stat().st_mode & 0o777)
        assert taken.exists()
        assert not conf.with_name("nginx.conf.before-intop").exists()
        included(play, conf)
        refused(play, conf)
        ambiguous(play, conf)


def included(play: Playing, conf: Path) -> None:
    """What it includes is looked for beside it, also when nginx checks it."""
    text = "include more.conf;\nevents {\n}\nhttp {\n}\n"
    conf.write_text(text)
    conf.with_name("more.conf").write_text("worker_priority 0;\n")
    words = ("-e", f"intop_nginx_conf={conf}", "-e", "intop_nginx_takes=true")
    _, changes = play(*words)
    assert changes
    assert "worker_processes 2;" in conf.read_text()
    play(*words, "-e", "intop_state=absent")
    assert text == conf.read_text()


def ambiguous(play: Playing, conf: Path) -> None:
    """A line of another block is never taken for ours."""
    head, http = (
        "worker_processes 1;\nevents {\n}\n",
        "http {\n    server {\n        %s\n    }\n}\n",
    )
    for own in (
        head + http % "location / {\n            sendfile off;\n        }",
        head + "http {\n    sendfile on;\n    server {\n        sendfile off;\n    }\n}\n",
        head + "http {\n    sendfile off; tcp_nopush on;\n}\n",
        head + "http {\n    sendfile\n        off;\n}\n",
    ):
        conf.write_text(own)
        with pytest.raises(AssertionError, match="sendfile stands in another block"):
            play("-e", f"intop_nginx_conf={conf}")
        assert own == conf.read_text()
        assert not conf.with_name("nginx.conf.before-intop").exists()
    # Blocks that have ended, and braces in a comment, are none that it stands in.
    own = "# }\nworker_processes 1;\nevents {\n}\nhttp {\n    map $host $b { default 1; }\n"
    own += "    server {\n        location / { root /; }\n    }\n    sendfile off;\n}\n"
    conf.write_text(own)
    play("-e", f"intop_nginx_conf={conf}", "-e", "intop_nginx_takes=true")
    assert conf.read_text().count("    sendfile on;") == 1
    assert "sendfile off" not in conf.read_text()


def refused(play: Playing, conf: Path) -> None:
    """What nginx does not take is never put in place."""
    conf.write_text("no_directive 1;\nevents {\n}\nhttp {\n}\n")
    with pytest.raises(AssertionError, match="unknown directive"):
        play("-e", f"intop_nginx_conf={conf}")
    assert "worker_processes" not in conf.read_text()
    assert list(conf.parent.glob("*draft*")) == []
    assert not conf.with_name("nginx.conf.before-intop").exists()
