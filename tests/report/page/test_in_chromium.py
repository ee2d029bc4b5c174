"""The page in a real browser: nothing leaves, nothing goes wrong, nothing sticks out."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import Browser, chromium
from intop.cli.running import stored_context
from intop.pipeline.reporting import gather
from intop.report.page.html import html
from intop.report.page.sections import document
from reported import campaign

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
COLOURS = """JSON.stringify(['color', 'background-color'].map(
    name => getComputedStyle(document.documentElement)[name]))"""
SMALLEST = """Math.min(...[...document.querySelectorAll('svg text')].map(t => {
    const box = t.closest('svg');
    return parseFloat(getComputedStyle(t).fontSize) * box.getBoundingClientRect().width
        / box.viewBox.baseVal.width;
}))"""
BAD = """<!DOCTYPE html><html lang="en"><meta name="viewport" content="width=device-width">
<body><p style="width:60rem">wide<script>console.error("wrong"); nowhere()</script>
<img src="http://127.0.0.1:9/x.png"></body></html>"""


@pytest.fixture(scope="module", name="browser")
def _browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module", name="report")
def _report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    with stored_context(campaign(folder), None, None) as context:
        page = html(document(gather(context)))
    path = folder / "intop-report.html"
    path.write_text(page, encoding="utf-8")
    assert path.stat().st_size < 5_000_000
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_opens_without_errors_and_requests(
    browser: Browser, report: Path, width: int, scheme: str
) -> None:
    page = browser.open(report, width=width, scheme=scheme)
    seen = page.seen()
    assert [] == seen.errors
    assert [report.as_uri()] == [url for url in seen.requests if not url.startswith("data:")]
    assert 0 == page.evaluate(OVERFLOW)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert 0 == page.evaluate(OVERFLOW)
    assert page.evaluate(SMALLEST) >= 8  # CSS pixels


def test_dark_and_light_are_not_the_same(browser: Browser, report: Path) -> None:
    shown = [browser.open(report, scheme=s).evaluate(COLOURS) for s in ("light", "dark")]
    assert shown[0] != shown[1]


def test_what_is_wrong_with_a_page_is_seen(browser: Browser, tmp_path: Path) -> None:
    """Else all of the above might pass for any page."""
    path = tmp_path / "bad.html"
    path.write_text(BAD)
    page = browser.open(path, width=390)
    seen = page.seen()
    assert "http://127.0.0.1:9/x.png" in seen.requests
    assert any("wrong" in error for error in seen.errors)
    assert any("nowhere" in error or "Uncaught" in error for error in seen.errors)
    assert page.evaluate(OVERFLOW) > 0
