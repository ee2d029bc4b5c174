"""A controller in a process of its own, which a test tells what to do and kills.

    python -m machine.session LAB [directives]

It takes the lab's machine, with nginx's files where directives are asked for, and answers `taken`.
Then each line on standard input is a step: `write` sets VALUES, and DIRECTIVES where it has them;
`keep` leaves the same there with a file of VALUES for the next boot; `done STEP` is the answer.
"""

import sys

from builders.nginx_files import catalogue
from intop.domain.configuration import Configuration
from intop.hosts.guard import guarded
from intop.hosts.nginx_files import tunable_nginx
from intop.hosts.ssh import Secret, connect
from intop.lab import cluster as lab

VALUES = {"vm.swappiness": "17", "net.core.somaxconn": "777", "net.ipv4.tcp_fin_timeout": "41"}
"""None of them is any kernel's own."""
DIRECTIVES = {"nginx:main.worker_processes": "2", "nginx:http.keepalive_timeout": "20"}
FILE = "/etc/sysctl.d/99-zz-intop.conf"
ABOUT = {"campaign": "1", "study": "machine", "since": "today"}


def main(name: str, kinds: tuple[str, ...]) -> None:
    """Hold the machine until standard input ends."""
    password = Secret(lab.sudo_password(name).read_text().rstrip("\n"))
    cluster = lab.cluster(name)
    host = connect(cluster.load_balancer, password)
    nginx = tunable_nginx(host, catalogue()) if kinds else None
    restart = cluster.server_restart if kinds else ""
    wanted = Configuration(VALUES | (DIRECTIVES if kinds else {}))
    text = "".join(f"{key} = {value}\n" for key, value in VALUES.items())
    with guarded(host, VALUES, nginx=nginx, restart=restart) as guard:
        answer("taken")
        for line in sys.stdin:
            step = line.strip()
            if step == "write":
                guard.apply(wanted)
            elif step == "keep":
                guard.keep(wanted, ABOUT, (FILE, text))
            answer(f"done {step}")


def answer(text: str) -> None:
    """At once, and not when a buffer is full."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], tuple(sys.argv[2:]))
