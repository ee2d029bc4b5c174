"""A controller in a process of its own, which a test tells what to do and kills.

    python -m machine.session LAB

It takes the lab's machine and answers `taken`. Then each line on standard input is a step: `write`
sets VALUES, `keep` leaves them there with a file for the next boot; `done STEP` is the answer.
"""

import sys

from intop.domain.configuration import Configuration
from intop.hosts.guard import guarded
from intop.hosts.ssh import Secret, connect
from intop.lab import cluster as lab

VALUES = {"vm.swappiness": "17", "net.core.somaxconn": "777", "net.ipv4.tcp_fin_timeout": "41"}
"""None of them is any kernel's own."""
FILE = "/etc/sysctl.d/99-zz-intop.conf"
ABOUT = {"campaign": "1", "study": "machine", "since": "today"}


def main(name: str) -> None:
    """Hold the machine until standard input ends."""
    password = Secret(lab.sudo_password(name).read_text().rstrip("\n"))
    host = connect(lab.cluster(name).load_balancer, password)
    text = "".join(f"{key} = {value}\n" for key, value in VALUES.items())
    with guarded(host, VALUES) as guard:
        answer("taken")
        for line in sys.stdin:
            step = line.strip()
            if step == "write":
                guard.apply(Configuration(VALUES))
            elif step == "keep":
                guard.keep(Configuration(VALUES), ABOUT, (FILE, text))
            answer(f"done {step}")


def answer(text: str) -> None:
    """At once, and not when a buffer is full."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
