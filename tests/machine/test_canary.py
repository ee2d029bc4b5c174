"""A canary whose host loses its power."""

import time

import pytest

from intop.hosts.host import output
from kit.canaries import traffic
from kit.studies import Study
from machine.hosts import Machine, left, serves_again
from machine.session import VALUES

pytestmark = pytest.mark.machine

LOG_FILE = "/etc/nginx/conf.d/log.conf"
LOG = """log_format intop '$msec $connection $status $request_time';
access_log /var/log/nginx/intop.log intop;
"""
FEW_CLIENTS = """
import http.client, sys, threading, time

def ask():
    while True:
        connection = http.client.HTTPConnection(sys.argv[1], 80, timeout=20)
        try:
            for _ in range(20):
                connection.request("GET", "/index.html")
                connection.getresponse().read()
                time.sleep(0.2)
        except OSError:
            time.sleep(0.2)
        finally:
            connection.close()

for _ in range(3):
    threading.Thread(target=ask, daemon=True).start()
print("flows", flush=True)
sys.stdin.read()
"""
"""More would take the emulated machine's one processor from everything else."""
TRIED = {key: VALUES[key] for key in ("vm.swappiness", "net.ipv4.tcp_fin_timeout")}


def test_the_power_fails_in_a_canary(
    machine: Machine, study: Study, before: dict[str, str]
) -> None:
    path = study.folder / "intop.toml"
    path.write_text(path.read_text().replace("[study]\n", '[study]\nbaselines = "mine"\n'))
    (study.folder / "mine").mkdir()
    values_text = "".join(f'"{key}" = {value}\n' for key, value in TRIED.items())
    head = 'schema = 1\ntitle = "Tried"\nsource = "this test"\n[values]\n'
    (study.folder / "mine/mine.toml").write_text(f"{head}{values_text}")
    machine.asked(f"cat > {LOG_FILE} <<'END'\n{LOG}END\nsystemctl reload nginx")
    words = ("--configuration", "mine", "--connections", "all", "--limit-times", "1000")
    try:
        with traffic(study, program=FEW_CLIENTS):
            # To read its log once takes an emulated machine seconds.
            process = study.start("canary", *words, "--block-s", "60", "--washout-s", "5")
            try:
                machine.wait_for_values(process, lambda result: TRIED.items() <= result.items())
                machine.cut_power()
                _, printed = process.communicate(timeout=300)
            finally:
                process.kill()
            assert process.returncode == 1, printed
            assert "Traceback" not in printed
            assert "the same command" in printed

            since = time.monotonic()
            machine.switch_on()
            machine.took("power cut in a canary, until all servers answer", since)
            assert before == machine.values()
        out, _ = study.run("status")  # which ends the session that was left
        assert "not held" in out.splitlines()[0]
        with machine.connected() as host:
            assert left(host) == ""
    finally:
        machine.switch_on()
        with machine.connected() as host:
            serves_again(host)
            output(host, f"rm -f {LOG_FILE} && systemctl reload nginx")
