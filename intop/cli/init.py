"""init: a study's file, from a few answers and what the load balancer shows."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from intop.cli import doctor
from intop.command.options import subcommand
from intop.command.output import say
from intop.errors import HostError, IntopError, UsageError
from intop.resources import shipped

if TYPE_CHECKING:
    from intop.domain.cluster import HostAddress
    from intop.inspect.discovery import Discovered

HOST = "[USER@]HOST[:PORT]"
RATE = 100
"""Requests/s of a new study; a light load for any server."""
BACKENDS = "Backends, as ssh knows them, separated by spaces"
DYNAMIC = "Page made on request, a second workload that doubles the time (empty: none)"


@subcommand(
    "init",
    "intop init",
    "intop init --lab                                 a study of the embedded lab",
    "intop init --balancer web1 --generator load1     asks only for what is still missing",
    "intop init --balancer root@10.0.0.20 --generator 10.0.0.10 --path / --path /app.js --rate 500",
)
@click.option("--lab", is_flag=True, help="Write the embedded lab's study. No host is asked.")
@click.option("--balancer", metavar=HOST, help="The load balancer, as ssh knows it.")
@click.option("--generator", metavar=HOST, help="The host that sends the load.")
@click.option(
    "--backend",
    "backends",
    multiple=True,
    metavar=HOST,
    help="A backend, which intop only reads.  [default: nginx's upstreams]",
)
@click.option(
    "--url",
    help="The load balancer as the load generator reaches it.  [default: by what nginx listens on]",
)
@click.option("--path", "paths", multiple=True, help="A static file to ask for.  [default: /]")
@click.option("--dynamic", "dynamic_path", help="A page that is made on request.  [default: none]")
@click.option("--restart", help="The command that restarts nginx.  [default: by systemd]")
@click.option("--rate", type=click.IntRange(min=1), help=f"Requests a second.  [default: {RATE}]")
@click.option(
    "--sudo",
    is_flag=False,
    flag_value="yes",
    type=click.Choice(["yes", "ask", "doas"]),
    help="Become root on the load balancer by sudo; --sudo=ask asks for its password.",
)
@click.option("--key-file", help="The private key for all hosts, else the agent's or yours.")
@click.option("--known-hosts", help="The file of known host keys, else yours.")
@click.option("--name", default="tuning", show_default=True, help="The study's name.")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("intop.toml"),
    show_default=True,
    help="The file to write.",
)
@click.option("--doctor/--no-doctor", "checks", default=True, help="Run intop doctor afterwards.")
def command(lab: bool, output: Path, checks: bool, **options: Any) -> None:
    """Write an intop.toml by asking about your hosts.

    intop asks the load balancer what nginx listens on, which backends it has and how it is
    restarted. The load generator tries which of nginx's addresses it reaches. On a terminal intop
    asks you for what is still missing. It changes nothing on any host. In the end it runs intop
    doctor.
    """
    if output.exists():
        raise UsageError(
            f"{output} is there already. Name another file. Run: intop init --output FILE"
        )
    if lab:
        given = [
            f"--{name.replace('_', '-')}"
            for name, value in options.items()
            if value and name != "name"
        ]
        if given:
            raise UsageError(f"--lab needs no hosts: leave {', '.join(given)} out")
        _write(output, (shipped("configs") / "lab.toml").read_text())
        say("next: intop lab up && intop tune")
        return
    _write(output, _study(**options))
    if checks:
        click.get_current_context().invoke(
            doctor.command, config=output, arch=None, as_json=False, writes=False, details=False
        )


def _write(path: Path, text: str) -> None:
    from intop.atomic import write_atomically

    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise UsageError(f"{path}: can't be written: {error.strerror}") from error
    say(f"written: {path}")


def _study(
    *,
    name: str,
    balancer: str | None,
    generator: str | None,
    backends: tuple[str, ...],
    url: str | None,
    paths: tuple[str, ...],
    dynamic_path: str | None,
    restart: str | None,
    rate: int | None,
    sudo: str | None,
    key_file: str | None,
    known_hosts: str | None,
) -> str:
    from intop.config.cluster import host_address
    from intop.config.new_study import NewStudy
    from intop.domain.cluster import is_command, is_server_url
    from intop.domain.workload import is_path

    files = {"key_file": key_file, "known_hosts": known_hosts}
    way: dict[str, Any] = {name: file for name, file in files.items() if file is not None}
    root = {} if sudo is None else {"sudo": True if sudo == "yes" else sudo}
    asks = sys.stdin.isatty() and sys.stderr.isatty()
    balancer = _answer("--balancer", "Load balancer, as ssh knows it", balancer, asks=asks)
    address = host_address(balancer, **way, **root)
    shown = _discovered(address)
    arch = _arch(shown, balancer)
    generator = _answer("--generator", "Load generator, as ssh knows it", generator, asks=asks)
    sender = host_address(generator, **way)
    if not backends:
        from intop.hosts.ssh.aliases import by_alias

        names = " ".join(by_alias(shown.backends))
        backends = tuple(_answer("--backend", BACKENDS, None, names, asks=asks).split())
    likely = "" if url else _reached(sender, shown.urls)
    url = _answer("--url", "Address of the load balancer", url, likely, asks=asks)
    restart = _answer("--restart", "Command that restarts nginx", restart, shown.restart, asks=asks)
    if not paths:
        paths = tuple(
            _answer("--path", "Static files, separated by spaces", None, "/", asks=asks).split()
        )
    if dynamic_path is None and asks:
        dynamic_path = click.prompt(DYNAMIC, default="", err=True)
    _check(is_server_url, "--url", url)
    _check(is_command, "--restart", restart)
    for path in paths:
        _check(is_path, "--path", path)
    if dynamic_path:
        _check(is_path, "--dynamic", dynamic_path)
    if rate is None and asks:
        rate = click.prompt("Requests a second", default=RATE, type=click.IntRange(min=1), err=True)
    return NewStudy(
        name=name,
        arch=arch,
        url=url,
        restart=restart,
        balancer=address,
        generator=sender,
        backends=[host_address(word, **way) for word in backends],
        static_paths=paths,
        dynamic_path=dynamic_path or "",
        rate_rps=RATE if rate is None else rate,
    ).text()


def _check(is_valid: Callable[[str], bool], option: str, text: str) -> None:
    """Raise UsageError for a text that the study's file could not have."""
    try:
        is_valid(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error} (got {text!r})") from error


def _discovered(address: "HostAddress") -> "Discovered":
    """Ask the load balancer, and say what it shows."""
    from intop.command.passwords import connecting
    from intop.inspect.discovery import discover

    shown = discover(address, connecting([address]))
    if shown.problem:
        say(f"{address.name}: {shown.problem}")
    if not shown.is_root:
        raise IntopError(
            f"{address.name}: sysctls need root there. Name another user (root@HOST), or say --sudo"
        )
    if shown.access_logs:
        say(f"{address.name}: nginx logs to {', '.join(shown.access_logs)}")
    return shown


def _reached(generator: "HostAddress", urls: Sequence[str]) -> str:
    """Return the URL that the load generator reaches; "" for none. Says why there is none."""
    from intop.command.passwords import connecting
    from intop.inspect.discovery import reached

    try:
        url = reached(generator, connecting([generator]), urls)
    except HostError as error:
        say(f"{error}. So it could not try which address it reaches")
        return next(iter(urls), "")
    if urls and not url:
        say(f"{generator.name}: connects to none of {', '.join(urls)}")
    return url


def _arch(shown: "Discovered", balancer: str) -> str:
    if not shown.arch:
        raise IntopError(f"{balancer}: is neither X86 nor ARM, and intop tunes no other machine")
    return shown.arch


def _answer(option: str, question: str, given: str | None, default: str = "", *, asks: bool) -> str:
    """Return what was given, else what is answered, else the default. Raises UsageError."""
    if given:
        return given
    if asks:
        return str(click.prompt(question, default=default or None, err=True))
    if default:
        return default
    raise UsageError(f"there is no terminal to ask on: say {option}")
