"""All files of an nginx: includes as nginx follows them, and what `nginx -T` prints."""

import pytest

from builders.nginx_files import TEXTS, conf
from intop.domain.nginx.conf import Conf, matches, parse_shown
from intop.errors import NginxFileError

HEAD = "# configuration file /etc/nginx/{}:\n"


def shown(texts: dict[str, str]) -> str:
    return "".join(f"{HEAD.format(path)}{text}\n" for path, text in texts.items())


def test_what_nginx_prints_comes_back_as_its_files() -> None:
    result = parse_shown(shown(dict(TEXTS)))
    assert result.main == "/etc/nginx/nginx.conf"
    assert {p.removeprefix("/etc/nginx/"): s.text for p, s in result.sources.items()} == TEXTS


def test_places_know_their_blocks_across_files() -> None:
    places = conf().named("proxy_set_header")
    assert [place.context for place in places] == [("http", "server", "location")] * 4
    assert {place.source.path for place in places} == {"/etc/nginx/snippets/proxy.conf"}
    first = conf().named("least_conn")[0]
    assert first.where == "/etc/nginx/conf.d/site.conf:2 (http, upstream)"


def test_included_files_come_in_nginx_order() -> None:
    texts = {"nginx.conf": "include c/*.conf;", "c/b.conf": "x b;", "c/a.conf": "x a;"}
    texts |= {"c/.hidden.conf": "x h;", "c/a.txt": "x t;", "c/d/e.conf": "x e;"}
    assert [p.statement.arguments for p in conf(texts).named("x")] == [("a",), ("b",)]


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("/a/b.conf", "/a/*.conf", True),
        ("/a/b/c.conf", "/a/*.conf", False),
        ("/a/b/c.conf", "/a/*/c.conf", True),
        ("/a/.b.conf", "/a/*.conf", False),
        ("/a/.b.conf", "/a/.*", True),
        ("/a/b1", "/a/b[0-9]", True),
        ("/a/B", "/a/b", False),
        ("/a/b", "/a/[^a]", True),
        ("/a/a", "/a/[!a]", False),
        ("/a/]", "/a/[]]", True),
        ("/a/7", "/a/[[:digit:]x]", True),
        ("/a/[", "/a/[", True),
        ("/a/*b", r"/a/\*[b]", True),
        ("/a/cb", r"/a/\*[b]", False),
        (r"/a/x\y", r"/a/x\y", True),
        ("/a/é", "/a/?", False),
        ("/a/é", "/a/??", True),
        ("/a/b", "/a/[z-a]*", False),
    ],
)
def test_patterns_are_those_of_glob(path: str, pattern: str, expected: bool) -> None:
    assert matches(path, pattern) == expected


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "nginx -T:1: no line"),
        ("nginx: [emerg] unknown directive\n", "nginx -T:1: no line"),
        (shown({"nginx.conf": "a;"}) * 2, "nginx -T:3: /etc/nginx/nginx.conf is shown twice"),
        (shown({"nginx.conf": "a;", "b.conf": "b;"}), "no include names /etc/nginx/b.conf"),
        (shown({"nginx.conf": "a {"}), "/etc/nginx/nginx.conf:1: the block 'a' is not ended"),
    ],
)
def test_what_is_no_print_of_nginx_has_one_error(text: str, what: str) -> None:
    with pytest.raises(NginxFileError, match=what.replace("[", r"\[")):
        parse_shown(text)


SAVED = shown({"nginx.conf": "http { include mime.types; }", "mime.types": "types { }"})


@pytest.mark.parametrize(
    ("texts", "what"),
    [
        (
            {"nginx.conf": shown({"nginx.conf": "user a;"})},
            "nginx -T:2: /etc/nginx/nginx.conf is shown twice: a file has the line",
        ),
        (
            {"nginx.conf": SAVED, "mime.types": "types { }"},
            "nginx -T:2: /etc/nginx/nginx.conf is shown twice: a file has the line",
        ),
        (
            {"nginx.conf": f"user a;\n{HEAD.format('old.conf')}user b;"},
            "nginx -T:1: no include names /etc/nginx/old.conf, which it shows: if a file",
        ),
    ],
)
def test_a_saved_print_in_place_of_a_file_is_named(texts: dict[str, str], what: str) -> None:
    with pytest.raises(NginxFileError) as caught:
        parse_shown(shown(texts))
    message = str(caught.value)
    assert message.startswith(what)
    assert message.endswith("Take it out: grep -rn '^# configuration file /' /etc/nginx")


def test_files_that_include_each_other_have_an_error() -> None:
    texts = {"nginx.conf": "include a.conf;", "a.conf": "x;\ninclude b.conf;"}
    with pytest.raises(NginxFileError, match=r"b.conf:1: /etc/nginx/a.conf includes itself"):
        conf(texts | {"b.conf": "include *.conf;"})


def test_files_that_grow_without_end_have_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("intop.domain.nginx.conf.MOST", 1000)
    texts = {"nginx.conf": "include 0;"}
    texts |= {f"{n}": f"include {n + 1}; include {n + 1};" for n in range(40)}
    with pytest.raises(NginxFileError, match="more than 1000 statements"):
        conf(texts | {"40": "x;"})


def test_edited_files_take_the_place_of_the_old_ones() -> None:
    now = conf().edited({"/etc/nginx/snippets/proxy.conf": "proxy_set_header A b;"})
    assert len(now.named("proxy_set_header")) == 2
    assert isinstance(now, Conf)
