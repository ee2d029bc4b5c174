"""A deployment as an Ansible playbook that needs nothing beside ansible-core.

It reads each key before it writes, so a run without a difference changes nothing, and it keeps on
the host what was set before, so that it can be undone.
"""

import json
import textwrap

from intop.domain.cluster import MACHINES
from intop.domain.deployment import Deployment
from intop.domain.nginx.directive import Effective
from intop.domain.parameter import PARTNERS
from intop.domain.sysctl_file import NAME, OURS, comment, plain_values, provenance, sysctl_file
from intop.report.export import ansible_nginx
from intop.report.export.nginx import NginxText
from intop.version import __version__

_PLAYBOOK = """\

- name: {name}
  hosts: "{{{{ intop_hosts | mandatory('{unnamed}') }}}}"
  become: true
  gather_subset: ["!all", "!min", "platform"]
  environment:
    PATH: /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  vars:
    intop_machines: {machines}
    intop_path: {path}
    intop_values:
{values}
    intop_file: !unsafe |
{file}
    # What was set before, a line for each key; of none as long as there is no such file.
    intop_before: "{{{{ intop_path }}}}.before"
    intop_kept: "{{{{ dict((intop_slurped.content | default('') | b64decode).splitlines()
      | map('split', ' = ')) }}}}"
    # The kernel sets one of two to zero when the other is written. Zero is written to neither.
    intop_partners: {partners}
    intop_zeroed: "{{{{ intop_partners | dict2items | selectattr('value', 'in', intop_wanted)
      | map(attribute='key') | list }}}}"
    intop_zeros: "{{{{ intop_kept | dict2items | selectattr('key', 'in', intop_partners)
      | selectattr('value', 'equalto', '0') | map(attribute='key') | list }}}}"
    intop_wanted: "{{{{ {{}} if intop_state | default('present') == 'absent' else intop_values }}}}"
    intop_goal: "{{{{ intop_kept | dict2items | rejectattr('key', 'in', intop_zeroed + intop_zeros)
      | items2dict | combine(intop_wanted) }}}}"
    intop_keys: "{{{{ (intop_kept.keys() | list + intop_wanted.keys() | list + intop_zeroed)
      | unique }}}}"
    intop_now: "{{{{ dict((intop_read.stdout | default('') | regex_replace('[ \\\\t]+', ' '))
      .splitlines() | map('split', ' = ')) }}}}"
    intop_differing: "{{{{ intop_goal.items() | map('join', '=') | list
      | difference(intop_now.items() | map('join', '=') | list) }}}}"
  tasks:
    - name: Leave hosts of another architecture alone
      ansible.builtin.meta: end_host
      when: ansible_facts.architecture not in intop_machines

    - name: Check intop_state
      ansible.builtin.assert:
        that: intop_state | default('present') in ['present', 'absent']
        fail_msg: intop_state is present or absent
        quiet: true

    - name: Read what was set before intop
      ansible.builtin.slurp:
        src: "{{{{ intop_before }}}}"
      register: intop_slurped
      failed_when: false

    - name: Read what is set now
      ansible.builtin.command:
        argv: "{{{{ ['sysctl'] + intop_keys }}}}"
      register: intop_read
      when: intop_keys | length > 0
      changed_when: false
      check_mode: false

    - name: Keep what was set before intop
      ansible.builtin.copy:
        dest: "{{{{ intop_before }}}}"
        content: "{{% for key, value in (intop_now | combine(intop_kept)).items() %}}\\
          {{{{ key }}}} = {{{{ value }}}}\\n{{% endfor %}}"
        mode: "0644"
      when: intop_keys | length > intop_kept | length

    - name: Write the file for sysctl.d
      ansible.builtin.copy:
        dest: "{{{{ intop_path }}}}"
        content: "{{{{ intop_file }}}}"
        mode: "0644"
      when: intop_wanted | length > 0

    - name: Remove the file for sysctl.d
      ansible.builtin.file:
        path: "{{{{ intop_path }}}}"
        state: absent
      when: intop_wanted | length == 0

    - name: Set what differs
      ansible.builtin.command:
        argv: "{{{{ ['sysctl', '-w'] + intop_differing }}}}"
      when: intop_differing | length > 0
      changed_when: true

    - name: Forget what was set before intop
      ansible.builtin.file:
        path: "{{{{ intop_before }}}}"
        state: absent
      when: intop_wanted | length == 0
"""


UNNAMED = "Say which hosts are to be changed: -e intop_hosts=PATTERN, a host, a group or a pattern"
"""What Ansible says where nobody has: an inventory may have hosts that are no load balancers."""


def playbook(
    deployment: Deployment,
    *,
    written_at: str,
    nginx: NginxText | None = None,
    takes_it_by: Effective = "reload",
) -> str:
    """The playbook's text, YAML: a play for the kernel, and one for `nginx`, if there is any.

    `takes_it_by` is what makes nginx take it. JSON strings are YAML, and the file is a literal
    block, in which nothing has a meaning; !unsafe keeps Ansible from looking for templates in it.
    Raises UsageError for what sysctl would read otherwise, and for what stands in
    other files than nginx.conf.
    """
    head = comment(
        f"{OURS} {__version__} at {written_at}.",
        *provenance(deployment),
        "Hosts are named by -e intop_hosts=PATTERN, and without that nothing runs. To try: "
        "ansible-playbook --check --diff. To undo: -e intop_state=absent.",
    )
    text = f"{head}---"
    if deployment.sysctls:
        text += _kernel_play(deployment, written_at=written_at)
    if nginx is not None:
        machines = json.dumps(MACHINES[deployment.arch])
        text += ansible_nginx.play(nginx, machines=machines, unnamed=UNNAMED, verb=takes_it_by)
    return text


def _kernel_play(deployment: Deployment, *, written_at: str) -> str:
    values = "".join(
        f"{json.dumps(key)}: {json.dumps(value)}\n"
        for key, value in plain_values(deployment).items()
    )
    return _PLAYBOOK.format(
        name=json.dumps(f"Set the sysctls that intop found for {deployment.arch}"),
        machines=json.dumps(MACHINES[deployment.arch]),
        path=f"/etc/sysctl.d/{NAME}",
        unnamed=UNNAMED,
        partners=json.dumps(PARTNERS),
        values=textwrap.indent(values.rstrip(), " " * 6),
        file=textwrap.indent(sysctl_file(deployment, written_at=written_at).rstrip(), " " * 6),
    )
