"""`intop lab`: the embedded cluster."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from intop.command.options import (
    Group,
    arch_option,
    config_option,
    dry_run_option,
    examples,
    json_option,
    study_of,
)
from intop.command.output import interruptible, print_result, say
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.config.study import Study
    from intop.domain.cluster import LabSpec


KINDS = {
    "namespaces": "network namespaces",
    "vm": "a virtual machine",
    "machine": "a Debian machine",
}
"""The kinds of a lab's load balancer, in words."""
PACKAGES = {"vm": "guests", "machine": "machines"}
"""The words of system-packages.sh for what they need."""


def _dry_up(config: Path | None, arch: str | None, install: bool) -> None:  # noqa: ARG001
    """Print the plan of lab up."""
    from intop.lab import cluster

    for spec in labs_of(study_of(config), arch):
        state = cluster.status(spec.name).state
        kind = KINDS[spec.kind]
        if state == "up":
            print_result(f"lab {spec.name} is up, and would be left as it is")
        else:
            print_result(f"lab {spec.name} is {state}, and would be started ({spec.arch}, {kind})")


def _dry_down(config: Path | None, arch: str | None, every: bool) -> None:
    """Print the plan of lab down."""
    from intop.lab import cluster

    for name in labs_to_end(config, arch, every=every):
        lab = cluster.status(name)
        removed = f"would be removed with {lab.processes} processes"
        if lab.state == "down":
            removed = "nothing of it would be removed"
        print_result(f"lab {name} is {lab.state}, and {removed}")


@click.group(
    "lab", cls=Group, epilog=examples("intop lab up", "intop lab status", "intop lab down")
)
def group() -> None:
    """Run embedded clusters on this machine.

    They are real nginx and sshd, in network namespaces and emulated virtual machines.
    """


@group.command(epilog=examples("intop lab up", "intop lab up -c configs/lab.toml --arch x86"))
@config_option
@arch_option
@click.option(
    "--install/--no-install",
    default=True,
    show_default=True,
    help="Install programs that are missing, such as nginx, by apt-get. No service is started.",
)
@dry_run_option(_dry_up)
def up(config: Path | None, arch: str | None, install: bool) -> None:
    """Start the study's embedded clusters.

    They are real nginx and sshd in network namespaces, and virtual machines by QEMU. The load
    balancer may be another of Debian's servers. It needs root.
    """
    from intop.errors import LabError
    from intop.lab import cluster, commands

    study = study_of(config)
    labs = labs_of(study, arch)
    commands.require_root()
    if install:
        kinds = sorted({PACKAGES[spec.kind] for spec in labs if spec.kind in PACKAGES})
        servers = sorted({spec.server.name for spec in labs} - {"nginx"})
        commands.install_programs("lab", *kinds, *servers)
    for spec in labs:
        say(f"lab {spec.name}: starting")
        try:
            with interruptible(f"nothing is left of lab {spec.name}; intop lab up begins it again"):
                running = cluster.up(spec, say)
        except LabError as error:
            if arch is not None or spec.arch not in study.optional:
                raise
            say(f"{spec.arch} is optional in {study.path} and left out: {error}")
            continue
        by = f", {KINDS[spec.kind]} by {running.emulation}" if running.emulation else ""
        say(f"lab {spec.name} is up: {running.url}, {running.link}{by}")
        if spec.kind == "machine":
            from intop.command.passwords import PASSWORD_VARIABLE

            say(
                f"sudo there asks for a password; in this shell: export {PASSWORD_VARIABLE}="
                f'"$(cat {cluster.sudo_password(spec.name)})"'
            )


@group.command(epilog=examples("intop lab status", "intop lab status --json"))
@config_option
@json_option
def status(config: Path | None, as_json: bool) -> None:
    """Show the state of the embedded clusters.

    Clusters of other studies are listed, too.
    """
    from intop.document.machine import to_json
    from intop.domain.cluster import LabSpec
    from intop.lab import cluster

    replicas = (c for clusters in study_of(config).clusters.values() for c in clusters)
    own = {c.name for c in replicas if isinstance(c, LabSpec)}
    names = own | set(cluster.running())
    labs = [cluster.status(name) for name in sorted(names)]
    if as_json:
        print_result(to_json(labs))
        return
    for lab in labs:
        where = "".join(f", {word}" for word in (lab.url, lab.emulation) if word)
        print_result(f"lab {lab.name}: {lab.state}{where}, {lab.processes} processes")
        for problem in lab.problems:
            print_result(f"  {problem}")


@group.command(epilog=examples("intop lab down", "intop lab down --all"))
@config_option
@arch_option
@click.option("--all", "every", is_flag=True, help="Those of other studies too.")
@dry_run_option(_dry_down)
def down(config: Path | None, arch: str | None, every: bool) -> None:
    """Stop the embedded clusters.

    It also removes what a crash has left of them.
    """
    from intop.lab import cluster

    for name in labs_to_end(config, arch, every=every):
        with interruptible("intop lab down removes what is left"):
            removed = cluster.down(name)
        say(f"lab {name}: {'removed' if removed else 'there was nothing to remove'}")


def labs_to_end(config: Path | None, arch: str | None, *, every: bool) -> list[str]:
    """Return the names of the study's labs, or of all. Raises UsageError."""
    from intop.lab import cluster

    if every and arch is not None:
        raise UsageError("--all and --arch exclude each other")
    return cluster.running() if every else [s.name for s in labs_of(study_of(config), arch)]


def labs_of(study: "Study", arch: str | None) -> list["LabSpec"]:
    """Return the study's labs. Raises UsageError when it has none."""
    from intop.domain.cluster import LabSpec
    from intop.run.context import chosen_archs

    chosen = [c for name in chosen_archs(study, arch) for c in study.clusters[name]]
    labs = [c for c in chosen if isinstance(c, LabSpec)]
    if not labs:
        raise UsageError(f'{study.path} has no embedded cluster: a [cluster.x86] with lab = "..."')
    return labs
