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
        ("at https://geheim@10.0.0.2/x", f"at https://{MASK}@10.0.0.2/x"),
        ("https://geheim:x-oauth-basic@git", f"https://{MASK}:{MASK}@git"),
        ("/x?key=geheim&sig=geheim;a=1", f"/x?key={MASK}&sig={MASK};a=1"),
        ("/x?X-Amz-Signature=geheim#auth=geheim", f"/x?X-Amz-Signature={MASK}#auth={MASK}"),
        ("headers=Token: geheim|X_API_KEY: geheim, method=GET",
         f"headers=Token: {MASK}|X_API_KEY: {MASK}, method=GET"),
        ("headers=X-Session-Id: geheim|X-Test: a", f"headers=X-Session-Id: {MASK}|X-Test: a"),
        ("-H Private-Token: geheim", f"-H Private-Token: {MASK}"),
        ('["Ocp-Apim-Subscription-Key: geheim", 1]', f'["Ocp-Apim-Subscription-Key: {MASK}", 1]'),
        ("got Bearer geheim.geheim=", f"got Bearer {MASK}"),
        ("password=ge\\ heim user=me", f"password={MASK} user=me"),
        ("password='ge''heim' user=me", f"password={MASK} user=me"),
        ('password = """ge"heim"""', f"password = {MASK}"),
        (r'{\"password\": \"geheim\"}', rf'{{\"password\": \"{MASK}\"}}'),
    ],
)  # fmt: skip
def test_a_secret_is_masked_where_its_form_shows_it(text: str, expected: str) -> None:
    assert masked(text) == expected
    assert masked(expected) == expected


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
        "ssh://git@web.example and git+ssh://git@web.example",
        "/x?page=2&keys=3#monkeys",
        "headers=X-Author: me|Accept: */*",
        "key: value, token: it is asked for, session: one of 'key'",
        "the Bearer of news",
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
        assert masked_url(url) == f"postgresql://me@db.example/intop?sslmode=require&{name}={MASK}"
        assert password not in masked(f'invalid dsn: "{password}"', secrets_of(url))


@given(passwords.filter(lambda text: not set(text) & set("'\"\\")))
def test_no_password_is_left_of_a_files_value(password: str) -> None:
    assert masked_value({"db": {"password": password}}) == {"db": {"password": MASK}}
    assert masked_value(f"http://me:{password}@web") == f"http://me:{MASK}@web"
    assert masked_value([f"me:{password}@web"]) == [f"me:{MASK}@web"]


def test_masked_json_stays_json() -> None:
    message = {"message": masked("bad \"password='a b'\" at http://a:b@c"), "token": "x", "n": 5}
    assert set(json.loads(masked(json.dumps(message)))) == {"message", "token", "n"}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("headers", "Token: geheim", f"Token: {MASK}"),
        ("headers", "Authorization geheim", f"Authorization {MASK}"),
        ("headers", 'Authorization: Digest user="a", response="geheim"', f"Authorization: {MASK}"),
        ("headers", "Cookie: a=1, session=geheim, b", f"Cookie: {MASK}"),
        ("headers", ["Accept: a", "Api-Key:geheim"], ["Accept: a", f"Api-Key:{MASK}"]),
        ("headers", {"Accept": "a", "Token": "geheim"}, {"Accept": "a", "Token": MASK}),
        ("headers", "Host : a", "Host : a"),
        ("headers", "", ""),
        ("url", "https://geheim@web", f"https://{MASK}@web"),
        ("url", "https://geheim:@web", f"https://{MASK}:{MASK}@web"),
        ("url", "//me:geheim@web", f"//me:{MASK}@web"),
        ("sudo", "geheim", MASK),
        ("sudo", "yes", "yes"),
        ("sudo", 1, 1),
    ],
)
def test_a_value_of_a_file_is_masked_by_its_key(name: str, value: object, expected: object) -> None:
    assert masked_value(value, name) == expected


@pytest.mark.parametrize(
    "url", ["postgresql://me@db/x#password=geheim", "mysql://me@db/x&pwd=geheim"]
)
def test_a_secret_in_the_wrong_place_of_a_url_is_masked(url: str) -> None:
    assert url.replace("geheim", MASK) == masked_url(url)
