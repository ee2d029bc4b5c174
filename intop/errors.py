"""The error tree. The command line catches `IntopError` once and turns it into an exit code.

IntopError                    exit code 1: the work failed
├── UsageError                exit code 2: what was asked for can't be done as it stands
│   └── ConfigurationError    a file says something wrong; lists every problem with its place
├── HostError                 something on another machine; names the host
│   ├── UnreachableError      no connection, or it was lost
│   ├── CommandError          a command ended with a non-zero exit code
│   │   └── NginxRefusedError nginx did not take the files of a configuration
│   ├── RefusedValueError     the kernel did not take a value that was written
│   ├── ForeignChangeError    somebody else changes the keys that we measure with
│   ├── LoadKilledError       something ended the load tool, or kept it from its start
│   └── HostLockedError       another session holds the host
├── LoadOutputError           the load tool's output is not what our script prints
├── LabError                  the embedded cluster can't be made, found or removed
│   └── LabDownError          a lab that is needed is not up, or only in part
├── NginxFileError            an nginx configuration can't be read; names file and line
├── ArtefactError             a file of models is damaged, or not one that may be loaded
├── ResultMissingError        a stage needs what an earlier stage has not stored yet
├── StoredRowError            a row of the store is not as intop writes it
│   └── UnreadableJobError    that of a job; has its number
├── IncomparableError         data measured under different conditions would be mixed
├── AtWorkError               another process is at the same work
└── BaselineError             the default configuration can't be measured, or is overloaded
"""

from collections.abc import Sequence


class IntopError(Exception):
    """Something a user can act on: the message says what, where, and what to type next."""

    exit_code = 1


class UsageError(IntopError):
    """The request can't be carried out as it stands."""

    exit_code = 2


class ConfigurationError(UsageError):
    """A file is wrong. `problems` has one line for each place."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class HostError(IntopError):
    """Something went wrong on the host called `host`; `message` says what, without the name."""

    def __init__(self, host: str, message: str) -> None:
        self.host = host
        self.message = message
        super().__init__(f"{host}: {message}")


class UnreachableError(HostError):
    """A host without an SSH connection, or with a lost one."""


class CommandError(HostError):
    """A remote command failed."""


class NginxRefusedError(CommandError):
    """nginx refused the files of a configuration, in its own words; they are as before."""


class RefusedValueError(HostError):
    """The kernel did not take a value: it refused the write or read back as something else."""

    SAID = " and reads back as "
    """The words that only its message has: stored trials have messages only."""

    def __init__(self, host: str, key: str, value: str, got: str | None) -> None:
        self.key = key
        self.value = value
        self.got = got
        asked = repr(value) if len(value) <= 200 else f"{value[:200]!r}..."
        super().__init__(host, f"{key} was set to {asked}{self.SAID}{got!r}")


class ForeignChangeError(HostError):
    """Somebody else has changed guarded keys; `changes` has a line for each, with both values."""

    def __init__(self, host: str, changes: Sequence[str]) -> None:
        self.changes = tuple(changes)
        super().__init__(
            host,
            f"somebody else has changed sysctls since they were set: {'; '.join(changes)}. "
            "Find out who does, and let nobody else change them while it is measured",
        )


class LoadKilledError(HostError):
    """Something ended the load tool, or kept it from its start: no configuration's doing."""


class HostLockedError(HostError):
    """Another intop session holds the host."""


class LoadOutputError(IntopError):
    """The load tool printed something other than our script's one JSON line."""


class LabError(IntopError):
    """The embedded cluster can't be made, found or removed."""


class LabDownError(LabError):
    """A lab that is needed is not up, or only in part."""


class NginxFileError(IntopError):
    """nginx's configuration can't be read, by us or by nginx. `line` counts from 1."""

    def __init__(self, path: str, line: int, what: str) -> None:
        self.path = path
        self.line = line
        super().__init__(f"{path}:{line}: {what}")


class ArtefactError(IntopError):
    """A file of saved models is damaged, or holds what must not or can't be loaded."""


class ResultMissingError(IntopError):
    """A stage needs a result that is not in the store yet.

    `why` says what is missing. Where it is known, `about` names the architecture and the workload
    that lack it, and `commands` are the stages to run, in this order (see `run/prerequisites.py`).
    """

    def __init__(
        self,
        message: str,
        *,
        why: str = "",
        about: tuple[str, str] | None = None,
        commands: Sequence[str] = (),
    ) -> None:
        self.why = why or message
        self.about = about
        self.commands = tuple(commands)
        super().__init__(message)


class StoredRowError(IntopError):
    """A row of the store is not as this intop writes it: somebody else, or another version, did."""


class UnreadableJobError(StoredRowError):
    """A row of the store that is to be a job's is none; `job` is its number."""

    def __init__(self, job: int, message: str) -> None:
        self.job = job
        super().__init__(message)


class AtWorkError(IntopError):
    """Another process is at work on the same architecture and workload of a campaign."""


class IncomparableError(IntopError):
    """Data from different conditions would be mixed."""


class BaselineError(IntopError):
    """The default can't be measured, or is overloaded, so no trial would mean anything."""
