"""The playbook as YAML; what Ansible makes of it is in test_deployed.py."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from builders.results import DEPLOYMENT
from intop.deploy.export.ansible import UNNAMED, playbook
from intop.domain.sysctl_file import is_ours, sysctl_file


class Loader(yaml.SafeLoader):
    """Knows the one tag of Ansible's that is used."""


Loader.add_constructor("!unsafe", lambda loader, node: loader.construct_scalar(node))


def read(text: str) -> dict[str, Any]:
    [play] = yaml.load(text, Loader)
    assert isinstance(play, dict)
    return play


@pytest.mark.parametrize(
    "study", ["lab", "a\n- hosts: b\n\x07 {{ lookup('pipe', 'id') }} 'ü'\"#: &"]
)
def test_it_is_one_play_with_the_file_and_the_values(study: str) -> None:
    one = replace(DEPLOYMENT, study=study)
    text = playbook(one, written_at="now")
    play = read(text)
    assert is_ours(text)
    assert play["vars"]["intop_file"] == sysctl_file(one, written_at="now")
    assert play["vars"]["intop_values"] == one.values
    assert play["vars"]["intop_machines"] == ["x86_64", "i686"]
    assert play["vars"]["intop_path"] == "/etc/sysctl.d/99-zz-intop.conf"
    assert play["become"] is True


def test_it_needs_nothing_beside_ansible_core() -> None:
    for task in read(playbook(DEPLOYMENT, written_at="now"))["tasks"]:
        [module] = [name for name in task if "." in name]
        assert module.startswith("ansible.builtin.")


def test_an_arm_playbook_is_for_arm_machines() -> None:
    play = read(playbook(replace(DEPLOYMENT, arch="arm"), written_at="now"))
    assert "aarch64" in play["vars"]["intop_machines"]


def test_without_named_hosts_it_ends_with_one_error(tmp_path: Path) -> None:
    """An inventory's hosts are not all load balancers."""
    assert "all" not in read(playbook(DEPLOYMENT, written_at="now"))["hosts"]
    path = tmp_path / "play.yml"
    path.write_text(playbook(DEPLOYMENT, written_at="now"))
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", "a,b,", str(path), "--list-hosts"],
        check=False,
        capture_output=True,
        text=True,
        env={"ANSIBLE_HOME": str(tmp_path), "ANSIBLE_NOCOLOR": "1", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode != 0
    assert UNNAMED in " ".join(done.stderr.split())
    assert "hosts (" not in done.stdout
