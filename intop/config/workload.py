"""A study's workloads: the load, and the classes of clients that share it."""

import math
import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, IPvAnyAddress, model_validator

from intop.config.source import Model
from intop.domain.workload import Check, Clients, Http, Lifetimes, Workload, WorkloadName


def one_request(path: str) -> str:
    """Raises ValueError for what would not be the path of one request, everywhere the same."""
    if not re.fullmatch(r"/[A-Za-z0-9._~!$&()*+,;=:@%/?-]*", path):
        raise ValueError("a path begins with / and has no quotes, blanks or others to be %-encoded")
    return path


UrlPath = Annotated[str, AfterValidator(one_request)]
Header = Annotated[str, Field(max_length=1000, pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+: [ -~]+$")]
"""One line of a request's head: a name, a colon, a blank, printable ASCII."""


OF_ONE_CONNECTION = ("connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade")
"""Headers that make a request over HTTP/2 malformed."""


class _ClientsModel(Model):
    """How clients behave; see `Clients`."""

    requests_per_connection: Annotated[float, Field(ge=1, le=1e9)] | None = None
    lifetimes: Lifetimes = "fixed"
    think_ms: Annotated[float, Field(ge=0, le=3_600_000)] = 0.0
    read_kb_per_s: Annotated[float, Field(ge=1, le=1e9)] | None = None
    tls_resume: bool = False
    http: Http = "1.1"
    streams_per_connection: Annotated[int, Field(ge=1, le=1000)] = 1
    headers: tuple[Header, ...] = ()
    method: Annotated[str, Field(pattern=r"^[A-Z]{1,20}$")] = "GET"
    body_bytes: Annotated[int, Field(ge=0, le=100_000_000)] = 0
    source: IPvAnyAddress | None = None

    @model_validator(mode="after")
    def _fits_http(self) -> Self:
        if self.http != "2" and self.streams_per_connection > 1:
            raise ValueError('streams_per_connection is for http = "2"')
        names = [header.partition(":")[0] for header in self.headers]
        stray = [name for name in names if name.lower() in OF_ONE_CONNECTION]
        if self.http == "2" and stray:
            raise ValueError(f"headers: HTTP/2 has no {', '.join(stray)}")
        return self


class _ClassModel(_ClientsModel):
    """One class of several."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,40}$")]
    share: Annotated[float, Field(gt=0, le=1)]
    connections: Annotated[int, Field(ge=1, le=100_000)] | None = None


class WorkloadModel(_ClientsModel):
    """One table `[workload.NAME]`; see `Workload`."""

    rate_rps: Annotated[float, Field(ge=1, le=10_000_000)]
    connections: Annotated[int, Field(ge=1, le=100_000)]
    threads: Annotated[int, Field(ge=1, le=1024)] = 2
    arrivals: Literal["constant", "poisson"] = "constant"
    check: Check = "content"
    clients: tuple[_ClassModel, ...] = ()
    duration_s: Annotated[int, Field(ge=1, le=3600)] | None = None
    warmup_s: Annotated[int, Field(ge=0, le=600)] = 1
    timeout_s: Annotated[int, Field(ge=1, le=600)] = 10
    paths: tuple[UrlPath, ...] = ()

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

    def workload(self, name: WorkloadName) -> Workload:
        """The workload of this name."""
        own = self.model_dump(exclude={*_ClientsModel.model_fields, "clients"})
        classes = tuple(
            Clients(name=c.name, share=c.share, connections=c.connections, **_behaviour(c))
            for c in self.clients
        )
        return Workload(name=name, clients=classes or (Clients(**_behaviour(self)),), **own)


def _behaviour(model: _ClientsModel) -> dict[str, Any]:
    """The fields of `Clients` that every class has."""
    found = {name: getattr(model, name) for name in _ClientsModel.model_fields}
    return found | {"source": "" if model.source is None else str(model.source)}
