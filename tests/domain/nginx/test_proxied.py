"""Which of nginx's connections to backends are kept, by its files and its version."""

import pytest

from intop.domain.nginx.conf import Conf
from intop.domain.nginx.directive import Version
from intop.domain.nginx.proxied import lines, unkept

OLD: Version = (1, 29, 6)
NEW: Version = (1, 29, 7)
UPSTREAM = "upstream app { server 10.0.0.3:80;%s }"
KEPT = UPSTREAM % " keepalive 16;"
PASS = "location / { proxy_pass http://app;%s }"
BOTH = ' proxy_http_version 1.1; proxy_set_header Connection "";'


MAP = "map $http_upgrade $up { default upgrade; %s }"
UPGRADING = " proxy_http_version 1.1; proxy_set_header Connection $up;"
CLOSED = "the map of $up has it close them where a request asks for no Upgrade"


def why(text: str, version: Version) -> str:
    """Why connections are not kept, "" where they are."""
    conf = Conf.of("/n.conf", {"/n.conf": f"http {{ {text} }}"})
    return " | ".join(one.why for one in unkept(conf, version))


def server(*inside: str) -> str:
    return f"server {{ {' '.join(inside)} }}"


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (KEPT + server(PASS % BOTH), "", ""),
        (KEPT + server(PASS % ""), "it speaks HTTP/1.0 (proxy_http_version)", ""),
        (KEPT + server(PASS % " proxy_http_version 1.1;"), "it asks the backend to close", ""),
        # Inherited from blocks around, all of a name by the innermost block that has any.
        (KEPT + BOTH + server(PASS % ""), "", ""),
        (KEPT + BOTH + server(PASS % " proxy_set_header Host x;"), "it asks the backend to c", ""),
        (KEPT + server(BOTH, PASS % " proxy_http_version 1.0;"), "it speaks HTTP/1.0",
         "it speaks HTTP/1.0"),
        (KEPT + server(PASS % " proxy_http_version 1.1; proxy_set_header connection close;"),
         "it asks the backend to close", "it asks the backend to close"),
        (KEPT + server(PASS % ' proxy_http_version 1.1; proxy_set_header Connection $up;'), "", ""),
        (UPSTREAM % "" + server(PASS % BOTH), "upstream app keeps none (keepalive)", ""),
        (UPSTREAM % " keepalive 0;" + server(PASS % BOTH), "upstream app keeps none",
         "upstream app keeps none"),
        (UPSTREAM % " keepalive 8 local;" + server(PASS % BOTH), "", ""),
        # Also a new nginx keeps no connections where no block is to keep them in.
        (server("location / { proxy_pass http://10.0.0.3:8080/x; }"),
         "it names 10.0.0.3:8080 itself, and no upstream block",
         "it names 10.0.0.3:8080 itself, and no upstream block"),
        (server(f"location / {{ proxy_pass https://app.example; {BOTH} }}"),
         "it names app.example itself", "it names app.example itself"),
        (KEPT + server("location / { proxy_pass http://[fd00::3]:80; }"),
         "it names [fd00::3]:80 itself", "it names [fd00::3]:80 itself"),
        (KEPT + server(f"location / {{ proxy_pass http://APP; {BOTH} }}"), "", ""),
        (server("location / { proxy_pass HTTP://10.0.0.3?a=1; }"),
         "it names 10.0.0.3 itself", "it names 10.0.0.3 itself"),
        # As nginx's own page on WebSocket has it.
        (MAP % "'' close;" + KEPT + server(PASS % UPGRADING), CLOSED, CLOSED),
        (MAP % "'' '';" + KEPT + server(PASS % UPGRADING), "", ""),
        (MAP.replace("upgrade;", "close;") % "" + KEPT + server(PASS % UPGRADING), CLOSED, CLOSED),
        (MAP.replace("$http_upgrade", "$http_x") % "'' close;" + KEPT + server(PASS % UPGRADING),
         "", ""),
        # What nobody can tell.
        (server("location / { proxy_pass http://$app; }"), "", ""),
        (server("location / { proxy_pass http://unix:/run/app.sock; }"), "", ""),
    ],
)  # fmt: skip
def test_connections_are_kept_or_it_is_said_why_not(text: str, old: str, new: str) -> None:
    for version, expected in ((OLD, old), (NEW, new)):
        reason = why(text, version)
        assert reason.startswith(expected)
        assert bool(expected) == bool(reason)


def test_places_of_one_reason_are_one_line_with_the_remedy_of_the_version() -> None:
    text = server(*(f"location /{n} {{ proxy_pass http://10.0.0.3:80; }}\n" for n in range(3)))
    conf = Conf.of("/n.conf", {"/n.conf": f"http {{ {text} }}"})
    (line,) = lines(unkept(conf, OLD))
    assert line == (
        "proxy_pass at /n.conf:1 (http, server, location) and 2 more opens a connection to a "
        "backend for each request, since it names 10.0.0.3:80 itself, and no upstream block: write "
        "upstream NAME { server 10.0.0.3:80; keepalive 64; } and proxy_pass to NAME, with "
        'proxy_http_version 1.1; and proxy_set_header Connection ""; beside it'
    )
    (line,) = lines(unkept(conf, NEW))
    assert line.endswith("keepalive 64; } and proxy_pass to NAME")


@pytest.mark.parametrize(
    ("target", "more", "backend", "beside"),
    [
        ("https://app.example", "",
         "app.example:443", ", with proxy_set_header Host app.example; beside it"),
        ("https://10.0.0.3/x", "", "10.0.0.3:443", ""),
        ("https://[fd00::3]", "", "[fd00::3]:443", ""),
        ("https://app.example:8443", " proxy_set_header host $host;", "app.example:8443", ""),
    ],
)  # fmt: skip
def test_the_remedy_reaches_the_same_backend_by_the_same_name(
    target: str, more: str, backend: str, beside: str
) -> None:
    """In an upstream block the port is 80, and the backend is asked for by the block's name."""
    text = server(f"location / {{ proxy_pass {target};{more} }}")
    conf = Conf.of("/n.conf", {"/n.conf": f"http {{ {text} }}"})
    (result,) = unkept(conf, NEW)
    block = f"write upstream NAME {{ server {backend}; keepalive 64; }} and proxy_pass to NAME"
    assert block + beside == result.remedy


def test_streams_are_no_requests() -> None:
    conf = Conf.of("/n.conf", {"/n.conf": "stream { server { proxy_pass 10.0.0.3:80; } }"})
    assert unkept(conf, OLD) == ()
