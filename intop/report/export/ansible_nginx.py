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
    # All lines are set here, and checked together. It is beside nginx.conf for what that includes.
    intop_nginx_draft: "{{{{ intop_nginx_conf }}}}.draft-of-intop"
    intop_nginx_text: "{{{{ intop_nginx_slurped.content | b64decode | regex_replace('#.*', '') }}}}"
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

    - name: Read nginx.conf
      ansible.builtin.slurp:
        src: "{{{{ intop_nginx_conf }}}}"
      register: intop_nginx_slurped

    - name: See that each directive stands in its own block and on a line of its own
      ansible.builtin.assert:
        that: >-
          (intop_matches | int == 0) or
          (intop_matches | int == 1 and intop_alone | int == 1
          and intop_blocks | trim == item.block)
        fail_msg: >-
          {{{{ item.name }}}} stands in another block of {{{{ intop_nginx_conf }}}} than intop's,
          several times, or not on a line of its own, and a playbook can't tell these apart. Use
          intop apply, or merge what --format nginx writes
        quiet: true
      vars:
        intop_matches: >-
          {{{{ intop_nginx_text | regex_findall(item.regexp, multiline=True) | length }}}}
        intop_alone: >-
          {{{{ intop_nginx_text | regex_findall('^[ \\t]*' ~ item.name ~
          '[ \\t][^;{{}}\\n]*;[ \\t]*$', multiline=True) | length }}}}
        # The blocks that are open where it stands: without those that have ended before.
        intop_blocks: >-
          {{%- set open = namespace(text=intop_nginx_text
          | regex_replace('(?ms)' ~ item.regexp ~ '.*', '')) -%}}
          {{%- for _ in range(12) -%}}
          {{%- set open.text = open.text | regex_replace('[^;{{}}]*\\{{[^{{}}]*\\}}', '') -%}}
          {{%- endfor -%}}
          {{{{ open.text | regex_findall('(\\w+)[^;{{}}]*\\{{') | join(' ') }}}}
      loop: "{{{{ intop_lines }}}}"
      loop_control:
        label: "{{{{ item.line }}}}"
      when: intop_state | default('present') == 'present'

    - name: Change nginx.conf
      when: intop_state | default('present') == 'present'
      block:
        - name: Begin with nginx.conf as it is
          ansible.builtin.copy:
            src: "{{{{ intop_nginx_conf }}}}"
            dest: "{{{{ intop_nginx_draft }}}}"
            remote_src: true
            mode: preserve
          changed_when: false

        - name: Set directives
          ansible.builtin.lineinfile:
            path: "{{{{ intop_nginx_conf if ansible_check_mode else intop_nginx_draft }}}}"
            regexp: "{{{{ item.regexp }}}}"
            line: "{{{{ item.line }}}}"
            insertafter: "{{{{ item.insertafter }}}}"
          loop: "{{{{ intop_lines }}}}"
          loop_control:
            label: "{{{{ item.line }}}}"
          register: intop_line
          changed_when: ansible_check_mode and intop_line is changed

        - name: Have nginx check all of them
          ansible.builtin.command:
            argv: ["nginx", "-t", "-c", "{{{{ intop_nginx_draft }}}}"]
          changed_when: false

        - name: Keep nginx.conf as it is before intop
          ansible.builtin.copy:
            src: "{{{{ intop_nginx_conf }}}}"
            dest: "{{{{ intop_nginx_before }}}}"
            remote_src: true
            force: false
            mode: preserve

        - name: Put it in place
          ansible.builtin.copy:
            src: "{{{{ intop_nginx_draft }}}}"
            dest: "{{{{ intop_nginx_conf }}}}"
            remote_src: true
            mode: preserve
          when: not ansible_check_mode
          notify: Let nginx take it
      always:
        - name: Remove the draft
          ansible.builtin.file:
            path: "{{{{ intop_nginx_draft }}}}"
            state: absent
          changed_when: false

    - name: Have nginx check what it was
      ansible.builtin.command:
        argv: ["nginx", "-t", "-c", "{{{{ intop_nginx_before }}}}"]
      when: intop_state | default('present') == 'absent' and intop_nginx_found.stat.exists
      changed_when: false

    - name: Give nginx.conf back
      ansible.builtin.copy:
        src: "{{{{ intop_nginx_before }}}}"
        dest: "{{{{ intop_nginx_conf }}}}"
        remote_src: true
        mode: preserve
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
    """The play's text, YAML, to stand behind another. nginx checks the lines before they stay.

    `machines` is a JSON list, `verb` what systemd is to do with nginx. Raises UsageError for what
    stands in other files than nginx.conf, since which ones those are differs from host to host, and
    for what may stand there several times. The play itself refuses an nginx.conf in which a
    directive stands in several blocks.
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
        if place.context not in BLOCKS or place.statement.name in text.companions:
            raise _unwritable(" ".join(word.text for word in words))
        yield _line(place)


def _line(place: Place) -> dict[str, str]:
    block = BLOCKS[place.context]
    indent = "    " * len(place.context)
    words = [word.text for word in place.statement.words]
    return {
        "name": words[0],
        "block": " ".join(place.context),
        "regexp": rf"^\s*{words[0]}\s",
        "line": f"{indent}{' '.join(words)};",
        # What stands before all blocks is of the main context.
        "insertafter": "BOF" if block == "main" else rf"^\s*{block}\s*\{{",
    }


def _unwritable(what: str) -> UsageError:
    return UsageError(
        f"a playbook can't set {what}: it stands in files that differ from host to host, or beside "
        "others of its name. Use intop apply, or merge what --format nginx writes"
    )
