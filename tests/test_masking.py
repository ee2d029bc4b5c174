"""What is masked in text, and what stays as it is."""

import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from intop.masking import MASK, masked, masked_url, masked_value, secrets_of

passwords = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x24F, exclude_characters="*"),
    min_size=4,
    max_size=20,
).map(lambda text: f"Ge{text}im")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at http://me:geheim@10.0.0.2:80/x", f"at http://me:{MASK}@10.0.0.2:80/x"),
        ("at redis://:geheim@db", f"at redis://:{MASK}@db"),
        ("host=db user=me password=geheim port=1", f"host=db user=me password={MASK} port=1"),
        ("password='ge h\\'eim' user=me", f"password={MASK} user=me"),
        ("?user=me&sslpassword=ge%20heim&x=1", f"?user=me&sslpassword={MASK}&x=1"),
        ('db_token = "geheim"', f"db_token = {MASK}"),
        ("{'user': 'me', 'password': 'geheim'}", f"{{'user': 'me', 'password': '{MASK}'}}"),
        ("headers=Authorization: Bearer x.y|Accept: */*, method=GET",
         f"headers=Authorization: {MASK}|Accept: */*, method=GET"),
        ("Cookie: a=b; c=d\nNext: line", f"Cookie: {MASK}\nNext: line"),
    ],
)  # fmt: skip
def test_a_secret_is_masked_where_its_form_shows_it(text: str, expected: str) -> None:
    assert expected == masked(text)
    assert expected == masked(expected)


@pytest.mark.parametrize(
    "text",
    [
        "http://10.0.0.2:8080/@scope/x",
        "http://[fd00::1]:80/mail@x",
        "nginx:http.server_tokens=off",
        "net.ipv4.tcp_fastopen=3, passfile=/home/me/.pgpass",
        "use sudo = true, and its password: it is asked for",
        "ssh root@web.example:22",
        "postgresql://me@db.example/intop",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert text == masked(text)


@given(passwords)
@example("Gea/b?c@d:e#f&g=him")
@example("Ge%2Fim+him")
def test_no_password_is_left_of_a_stores_url(password: str) -> None:
    for raw in (password, quote(password, safe=""), quote_plus(password)):
        for url in (
            f"postgresql://me:{raw}@db.example/intop",
            f"postgresql://:{raw}@/intop?host=/run",
        ):
            assert raw not in masked_url(url)
            assert masked_url(url).startswith("postgresql://")
    encoded = quote_plus(password)
    for name in ("password", "p%61ssword", "PASSWORD", "sslpassword", "options", "other"):
        url = f"postgresql://me@db.example/intop?sslmode=require&{name}={encoded}"
        assert f"postgresql://me@db.example/intop?sslmode=require&{name}={MASK}" == masked_url(url)
        assert password not in masked(f'invalid dsn: "{password}"', secrets_of(url))


@given(passwords.filter(lambda text: not set(text) & set("'\"\\")))
def test_no_password_is_left_of_a_files_value(password: str) -> None:
    assert {"db": {"password": MASK}} == masked_value({"db": {"password": password}})
    assert f"http://me:{MASK}@web" == masked_value(f"http://me:{password}@web")
    assert [f"me:{MASK}@web"] == masked_value([f"me:{password}@web"])


def test_masked_json_stays_json() -> None:
    told = {"message": masked("bad \"password='a b'\" at http://a:b@c"), "token": "x", "n": 5}
    assert {"message", "token", "n"} == set(json.loads(masked(json.dumps(told))))
