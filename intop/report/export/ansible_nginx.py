"""The play of an exported playbook that sets directives in nginx.conf."""

import json
from collections.abc import Iterator

from intop.domain.nginx.conf import Place
from intop.domain.nginx.directive import Effective
from intop.errors import UsageError
from intop.report.export.nginx import NginxText

BLOCKS = {(): "main", ("events",): "events", ("http",): "http"}
"""Blocks that stand in nginx.conf itself, by the names around what stands in them."""

_PLAY = """\

- name: {name}
  hosts: "{{{{ intop_hosts | mandatory('{unnamed}') }}}}"
  become: true
  gather_subset: ["!all", "!min", "platform"]
  environment:
    PATH: /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  vars:
    intop_machines: {machines}
    # The file with the blocks events and http, and what makes nginx take it.
    intop_nginx_conf: /etc/nginx/nginx.conf
    intop_nginx_takes: systemctl {verb} nginx
    # As it was before intop, as long as there is such a file.
    intop_nginx_before: "{{{{ intop_nginx_conf }}}}.before-intop"
    intop_lines:
{lines}
  tasks:
    - name: Leave hosts of another architecture alone
      ansible.builtin.meta: end_host
      when: ansible_facts.architecture not in intop_machines

    - name: Look whether intop has changed nginx.conf
      ansible.builtin.stat:
        path: "{{{{ intop_nginx_before }}}}"
      register: intop_nginx_found

    - name: Keep nginx.conf as it is before intop
      ansible.builtin.copy:
        src: "{{{{ intop_nginx_conf }}}}"
        dest: "{{{{ intop_nginx_before }}}}"
        remote_src: true
        force: false
        mode: preserve
      when: intop_state | default('present') == 'present'

    - name: Set directives
      ansible.builtin.lineinfile:
        path: "{{{{ intop_nginx_conf }}}}"
        regexp: "{{{{ item.regexp }}}}"
        line: "{{{{ item.line }}}}"
        insertafter: "{{{{ item.insertafter }}}}"
        validate: nginx -t -c %s
      loop: "{{{{ intop_lines }}}}"
      when: intop_state | default('present') == 'present'
      notify: Let nginx take it

    - name: Give nginx.conf back
      ansible.builtin.copy:
        src: "{{{{ intop_nginx_before }}}}"
        dest: "{{{{ intop_nginx_conf }}}}"
        remote_src: true
        mode: preserve
        validate: nginx -t -c %s
      when: intop_state | default('present') == 'absent' and intop_nginx_found.stat.exists
      notify: Let nginx take it

    - name: Forget nginx.conf as it was
      ansible.builtin.file:
        path: "{{{{ intop_nginx_before }}}}"
        state: absent
      when: intop_state | default('present') == 'absent'
  handlers:
    - name: Let nginx take it
      ansible.builtin.command: "{{{{ intop_nginx_takes }}}}"
"""


def play(text: NginxText, *, machines: str, unnamed: str, verb: Effective) -> str:
    """The play's text, YAML, to stand behind another. nginx checks each line before it stays.

    `machines` is a JSON list, `verb` what systemd is to do with nginx. Raises UsageError for what
    stands in other files than nginx.conf: which ones those are, differs from host to host.
    """
    lines = list(_lines(text))
    return _PLAY.format(
        name=json.dumps("Set the directives of nginx that intop found"),
        machines=machines,
        unnamed=unnamed,
        verb=verb,
        lines="".join(f"      - {json.dumps(line)}\n" for line in lines).rstrip(),
    )


def _lines(text: NginxText) -> Iterator[dict[str, str]]:
    if text.unwritten:
        raise _unwritable(", ".join(text.unwritten))
    for place in text.conf.places:
        words = place.statement.words
        if place.statement.name in ("events", "http"):
            continue
        if place.context not in BLOCKS:
            raise _unwritable(" ".join(word.text for word in words))
        yield _line(place)


def _line(place: Place) -> dict[str, str]:
    block = BLOCKS[place.context]
    indent = "    " * len(place.context)
    words = [word.text for word in place.statement.words]
    return {
        "regexp": rf"^\s*{words[0]}\s",
        "line": f"{indent}{' '.join(words)};",
        # What stands before all blocks is of the main context.
        "insertafter": "BOF" if block == "main" else rf"^\s*{block}\s*\{{",
    }


def _unwritable(what: str) -> UsageError:
    return UsageError(
        f"a playbook can't set {what}: it stands in files that differ from host to host. Use intop "
        "apply, or merge what --format nginx writes"
    )
