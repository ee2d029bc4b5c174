"""Lines of logs in nginx's formats, and in JSON."""

import pytest

from intop.errors import UsageError
from intop.traffic.log_format import COMBINED, format_of, guessed, text_format

LINE = (
    '192.0.2.7 - - [27/Nov/2026:10:00:01 +0000] "GET /a%20b?x=1 HTTP/1.1" 200 512 '
    '"https://example.org/" "a \\x22b\\x22 c"'
)
COMMON_LINE = '2001:db8::1 - ann [27/Nov/2026:10:00:01 +0000] "GET / HTTP/1.1" 200 5'
JSON_LINE = (
    '{"time_iso8601":"2026-11-27T10:00:01+00:00","request":"GET /a HTTP/2.0","status":200,'
    '"body_bytes_sent":12,"request_time":0.004,"http_user_agent":"\\xE4"}'
)
CADDY = (
    '{"level":"info","ts":1795773601.25,"request":{"method":"GET","uri":"/a","proto":"HTTP/2.0",'
    '"headers":{}},"duration":0.002,"size":12,"status":200}'
)


def test_a_combined_line_has_all_values() -> None:
    values = format_of("combined").parse(LINE)
    assert values is not None
    assert values["remote_addr"] == "192.0.2.7"
    assert values["request"] == "GET /a%20b?x=1 HTTP/1.1"
    assert (values["status"], values["body_bytes_sent"]) == ("200", "512")
    assert values["http_user_agent"] == "a \\x22b\\x22 c"


def test_a_format_of_ones_own_is_read_with_braces_tabs_and_pipes() -> None:
    own = text_format("$msec\t${status}|$request_uri|$connection_requests")
    values = own.parse("1795773601.250\t200|/a|7")
    assert values == {
        "msec": "1795773601.250",
        "status": "200",
        "request_uri": "/a",
        "connection_requests": "7",
    }
    assert own.parse("anything else") is None


def test_a_value_with_the_next_literals_character_is_still_read() -> None:
    own = text_format("$remote_user [$time_local] $status")
    values = own.parse("a b [27/Nov/2026:10:00:01 +0000] 200")
    assert values is not None
    assert (values["remote_user"], values["status"]) == ("a b", "200")


def test_json_of_nginx_and_caddy_has_nginxs_names() -> None:
    values = format_of("json").parse(JSON_LINE)
    assert values is not None
    assert (values["request"], values["request_time"]) == ("GET /a HTTP/2.0", "0.004")
    caddy = format_of("json").parse(CADDY)
    assert caddy is not None
    assert caddy["msec"] == "1795773601.25"
    assert (caddy["request_method"], caddy["request_uri"]) == ("GET", "/a")
    assert (caddy["body_bytes_sent"], caddy["request_time"]) == ("12", "0.002")


@pytest.mark.parametrize(
    ("line", "name"), [(LINE, "combined"), (COMMON_LINE, "common"), (JSON_LINE, "json")]
)
def test_known_formats_are_guessed(line: str, name: str) -> None:
    assert guessed([line, line, "noise"]).name == name


def test_an_unknown_format_is_one_error() -> None:
    with pytest.raises(UsageError, match="none of the known formats"):
        guessed(["1795773601.250 200 /a"])
    with pytest.raises(UsageError, match="it has no variable"):
        format_of("plain")


def test_the_text_of_combined_is_nginxs_own() -> None:
    assert COMBINED.count("$") == 8


def test_a_format_with_more_at_its_end_is_not_guessed_to_be_a_shorter_one() -> None:
    line = '::1 - - [27/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 512 "-" "agent" 0.004 17'
    with pytest.raises(UsageError, match="none of the known formats"):
        guessed([line] * 5)
    shorter = line.removesuffix(' "-" "agent" 0.004 17')
    assert guessed([shorter] * 5).name == "common"
