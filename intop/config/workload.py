"""A study's workloads: the load, and the classes of clients that share it."""

import math
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    IPvAnyAddress,
    ValidationError,
    model_validator,
)

from intop.config.request_heads import LONGEST, check_together, header_line
from intop.config.request_heads import method as request_method
from intop.config.source import Listed, Model, plain, short
from intop.domain.workload import (
    WORKLOAD_KINDS,
    Check,
    Clients,
    Http,
    Lifetimes,
    Workload,
    WorkloadKind,
)
from intop.resources import shipped

MOST_WEIGHT = 1000
ALL = "all"
"""What stands for all workloads on a command line."""


def one_request(path: str) -> str:
    """Raises ValueError for what would not be the path of one request, everywhere the same."""
    if not re.fullmatch(r"/[A-Za-z0-9._~!$&()*+,;=:@%/?-]*", path):
        raise ValueError("a path begins with / and has no quotes, blanks or others to be %-encoded")
    return path


def _workload_name(name: str) -> str:
    """Raises ValueError for what can't be a word of a command line and of file names."""
    if not re.fullmatch(r"[a-z0-9-]{1,20}", name) or name.startswith("-") or name == ALL:
        raise ValueError(
            f"a workload's name has 1 to 20 of a-z, 0-9 and hyphens, the first no hyphen, and is "
            f"not {ALL}"
        )
    return name


def _by_weight(paths: object) -> object:
    """A table of weights as a list that has each path as often as its weight says, in lowest terms.

    Raises ValueError for a weight that is none.
    """
    if not isinstance(paths, dict):
        return paths
    for path, weight in paths.items():
        one_request(path)
        if not (type(weight) is int and 1 <= weight <= MOST_WEIGHT):
            raise ValueError(f"{path}: its weight must be 1 to {MOST_WEIGHT}, not {weight!r}")
    least = math.gcd(*paths.values())
    return [path for path, weight in paths.items() for _ in range(weight // least)]


UrlPath = Annotated[str, AfterValidator(one_request)]
WorkloadName = Annotated[str, AfterValidator(_workload_name)]
Paths = Annotated[Listed[UrlPath], BeforeValidator(_by_weight)]
Rate = Annotated[float, Field(ge=1, le=10_000_000)]
"""Requests/s."""
Connections = Annotated[int, Field(ge=1, le=100_000)]
Duration = Annotated[int, Field(ge=1, le=3600)]
"""Of the counted part of a trial (s)."""
Script = Annotated[str, Field(pattern=r"^([^\n]*/)?[A-Za-z0-9_-]{1,40}\.lua$")]
"""A Lua file, relative to the study's."""
Header = Annotated[str, Field(max_length=LONGEST), AfterValidator(header_line)]
"""One line of a request's head: a name, a colon, a blank, printable ASCII."""


def _address(value: object) -> object:
    """Raises ValueError for a number, which is no way to write an address."""
    if not isinstance(value, str):
        raise ValueError("must be an IP address in quotes")  # noqa: TRY004
    return value


class _ClientsModel(Model):
    """How clients behave; see `Clients`."""

    requests_per_connection: Annotated[float, Field(ge=1, le=1e9)] | None = None
    lifetimes: Lifetimes = "fixed"
    think_ms: Annotated[float, Field(ge=0, le=3_600_000)] = 0.0
    read_kb_per_s: Annotated[float, Field(ge=1, le=1e9)] | None = None
    tls_resume: bool = False
    http: Http = "1.1"
    streams_per_connection: Annotated[int, Field(ge=1, le=1000)] = 1
    headers: Listed[Header] = ()
    method: Annotated[str, AfterValidator(request_method)] = "GET"
    body_bytes: Annotated[int, Field(ge=0, le=100_000_000)] = 0
    source: Annotated[IPvAnyAddress, BeforeValidator(_address)] | None = None

    @model_validator(mode="after")
    def _fits_http(self) -> Self:
        if self.http != "2" and self.streams_per_connection > 1:
            raise ValueError('streams_per_connection is for http = "2"')
        check_together(self.headers, self.method, self.body_bytes)
        return self


class _ClassModel(_ClientsModel):
    """One class of several."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,40}$")]
    share: Annotated[float, Field(gt=0, le=1)]
    connections: Connections | None = None


class WorkloadModel(_ClientsModel):
    """One table `[workload.NAME]`; see `Workload`. `paths` may be a table of weights."""

    kind: WorkloadKind | None = None
    scheme: Literal["", "http", "https"] = ""
    script: Script | None = None
    tuned: bool = True
    rate_rps: Rate
    connections: Connections
    threads: Annotated[int, Field(ge=1, le=1024)] = 2
    arrivals: Literal["constant", "poisson"] = "constant"
    check: Check = "content"
    clients: Listed[_ClassModel] = ()
    duration_s: Duration | None = None
    warmup_s: Annotated[int, Field(ge=0, le=600)] = 1
    timeout_s: Annotated[int, Field(ge=1, le=600)] = 10
    paths: Paths = ()

    @model_validator(mode="after")
    def _whole_shares(self) -> "WorkloadModel":
        shares = math.fsum(c.share for c in self.clients)
        if self.clients and abs(shares - 1) > 1e-6:
            raise ValueError(f"the shares of its clients add up to {shares:g}, not to 1")
        names = [c.name for c in self.clients]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"two classes of clients are called {', '.join(sorted(twice))}")
        stray = _behaviour(self).keys() & self.model_fields_set
        if self.clients and stray:
            raise ValueError(
                f"{', '.join(sorted(stray))}: there are [[...clients]], so say it in each of them"
            )
        return self

    def kind_of(self, name: str) -> WorkloadKind:
        """What its requests are for. Raises ValueError where neither it nor its name says so."""
        by_name = next((kind for kind in WORKLOAD_KINDS if kind == name), None)
        if by_name and self.kind not in (None, by_name):
            raise ValueError(f"kind must be {by_name}, as its name says: or call it otherwise")
        if (found := self.kind or by_name) is None:
            raise ValueError('needs kind = "slt" (static files) or "dlt" (pages made on request)')
        return found

    def workload(self, name: str, folder: Path) -> Workload:
        """The workload of this name; `folder` is the study's. Raises ValueError."""
        own = self.model_dump(exclude={*_ClientsModel.model_fields, "clients"})
        own["kind"] = self.kind_of(name)
        own["script"] = "" if self.script is None else str(_script(folder / self.script))
        classes = tuple(
            Clients(name=c.name, share=c.share, connections=c.connections, **_behaviour(c))
            for c in self.clients
        )
        return Workload(name=name, clients=classes or (Clients(**_behaviour(self)),), **own)


class _LoadModel(Model):
    """What a single trial may have in place of its workload's."""

    rate_rps: Rate
    connections: Connections
    duration_s: Duration | None
    only_path: UrlPath | Literal[""]


def load_problem(workload: Workload) -> str:
    """Return what no study allows of a trial's load, such as `rate_rps: ... (got 1e12)`, or ""."""
    values = {name: getattr(workload, name) for name in _LoadModel.model_fields}
    try:
        _LoadModel.model_validate(values)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        return f"{detail['loc'][0]}: {plain(detail['msg'])} (got {short(detail['input'])})"
    return ""


def _script(path: Path) -> Path:
    """Raises ValueError for a script that is not there, or has the name of one of intop's."""
    if (shipped("lua") / path.name).exists():
        raise ValueError(f"script: {path.name} is one of intop's own: give it another name")
    if not path.is_file():
        raise ValueError(f"script: there is no file {path}")
    return path.absolute()


def _behaviour(model: _ClientsModel) -> dict[str, Any]:
    """The fields of `Clients` that every class has."""
    found = {name: getattr(model, name) for name in _ClientsModel.model_fields}
    return found | {"source": "" if model.source is None else str(model.source)}
