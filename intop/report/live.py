"""The live page of a campaign: progress, trials and verdicts as they come in.

It is served on this machine only, and refreshes itself. Only the store is read.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from intop.config.study import Study
from intop.document.drawing import NoDataError
from intop.document.html import html
from intop.document.model import Block, Document, Figure, Notes, Section
from intop.domain.campaign_status import CampaignStatus, Place, SubjectStatus
from intop.errors import IntopError
from intop.inspect.status import campaign_status, is_begun
from intop.inspect.status_view import best_lines, campaign, campaign_lines, stages
from intop.report.live_figure import trials_so_far
from intop.run.context import taking_part
from intop.store import opened_to_read

HOST = "127.0.0.1"
REFRESH_S = 10
"""Seconds after which a browser asks again."""

Environ = dict[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], object]


@dataclass(frozen=True, kw_only=True)
class LivePage:
    """A WSGI application that shows the latest campaign of a study."""

    study: Study
    arch: str | None
    port: int

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        if environ.get("HTTP_HOST") not in self._names:
            # Another site's page may lead a browser here by a name of its own.
            return _plain(start_response, HTTPStatus.FORBIDDEN, f"ask for {self.url}")
        if environ.get("PATH_INFO") != "/":
            return _plain(start_response, HTTPStatus.NOT_FOUND, f"there is only {self.url}")
        try:
            page = self._page()
        except IntopError as error:
            return _plain(start_response, HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        headers = [("Content-Type", "text/html; charset=utf-8"), ("Cache-Control", "no-store")]
        start_response("200 OK", headers)
        return [page]

    @property
    def url(self) -> str:
        """The page's address."""
        return f"http://{HOST}:{self.port}/"

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(f"{host}:{self.port}" for host in (HOST, "localhost"))

    def _page(self) -> bytes:
        with opened_to_read(self.study.store) as store:
            archs = taking_part(
                self.study,
                self.arch,
                lambda name: is_begun(self.study, store, name),
                lambda _: None,
            )
            workloads = tuple(self.study.workloads.values())
            status = campaign_status(self.study, store, archs, workloads)
            latest = None if store is None else store.latest(self.study.name)
            places: dict[tuple[str, str], Sequence[Place]] = {}
            if store is not None and latest is not None:
                for subject in store.subjects(latest):
                    places[subject.arch, subject.workload] = store.places(subject)
        document = live_document(status, places)
        return html(document, refresh_s=0 if status.finished_at else REFRESH_S).encode()


def live_document(
    status: CampaignStatus, places: dict[tuple[str, str], Sequence[Place]]
) -> Document:
    """Return the page of a campaign's progress, with the places of its plans by subject."""
    if status.campaign is None:
        blocks: tuple[Block, ...] = tuple(campaign(status))
        return Document(
            title=f"{status.study}: no campaign yet",
            subtitle="This page refreshes itself.",
            sections=(Section(title="Campaign", name="campaign", blocks=blocks),),
        )
    head = Section(
        title="Campaign", name="campaign", blocks=(Notes(tuple(campaign_lines(status))),)
    )
    subjects = [_subject(s, places.get((s.arch, s.workload), ())) for s in status.subjects]
    state = "finished" if status.finished_at else f"refreshes itself every {REFRESH_S} s"
    return Document(
        title=f"{status.study}: campaign {status.campaign}",
        subtitle=f"From {status.store}; {state}.",
        sections=(head, *subjects),
    )


def _subject(subject: SubjectStatus, places: Sequence[Place]) -> Section:
    name = subject.title.replace(" ", "-")
    table = replace(stages(subject.stages), name=f"{name}-stages", title="Stages")
    lines = Notes(tuple(line.strip() for line in best_lines(subject)))
    blocks = (*([lines] if lines.lines else []), *_figure(subject.title, places), table)
    return Section(title=subject.title, name=name, blocks=blocks)


def _figure(title: str, places: Sequence[Place]) -> Iterator[Block]:
    try:
        drawing = trials_so_far(title, places)
    except NoDataError:
        return
    yield Figure(
        title="Trials so far",
        draw=lambda: drawing,
        label=f"{title}: latency of every trial so far, of the default, and the lowest",
        caption="The lowest of many is flattered by luck. The verdict is a fresh measurement.",
    )


def _plain(start_response: StartResponse, status: HTTPStatus, text: str) -> list[bytes]:
    headers = [("Content-Type", "text/plain; charset=utf-8")]
    start_response(f"{status.value} {status.phrase}", headers)
    return [f"{text}\n".encode()]


def serve(page: LivePage) -> None:
    """Serve the page until a signal. Raises IntopError where the port is taken."""
    import waitress

    try:
        server = waitress.create_server(page, host=HOST, port=page.port, threads=1)
    except OSError as error:
        raise IntopError(
            f"{page.url} can't be served: {error.strerror}. Name another port: --port N"
        ) from error
    try:
        server.run()
    finally:
        server.close()
