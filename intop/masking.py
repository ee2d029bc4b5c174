"""Secrets in text, replaced before anybody reads them: passwords of URLs, of DSNs, of headers."""

import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote_plus

MASK = "***"

HARMLESS = frozenset({
    *("host", "hostaddr", "port", "dbname", "user", "service", "passfile", "application_name"),
    *("connect_timeout", "keepalives", "keepalives_idle", "keepalives_interval"),
    *("keepalives_count", "tcp_user_timeout", "target_session_attrs", "load_balance_hosts"),
    *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "gssencmode", "channel_binding"),
    *("require_auth", "client_encoding", "mode", "uri", "cache", "immutable", "timeout", "vfs"),
})  # fmt: skip
"""Parameters of a store's URL whose values may be seen. Any other one may hold a secret."""

_SECRET_NAMES = (
    *("password", "passwd", "passphrase", "passwort", "pwd", "secret", "token"),
    *("apikey", "accesskey", "secretkey", "credentials"),
)
"""The ends of secrets' names, in lower case and without punctuation."""

_IN_QUERIES = (
    *("key", "sig", "signature", "auth", "code", "jwt", "pass", "session", "sid", "sessid"),
    *("sessionid", "hmac", "assertion", "ticket", "credential", "nonce", "otp"),
)
"""The ends of other names of secrets, where they stand in a URL's query. In a text they say little.
"""

SHORTEST = 3
"""A shorter secret is not looked for in other programs' words: it stands in every sentence."""

LONGEST_SWITCH = 5
"""Letters of a word such as ask or false. A longer one in its place may be a password."""

_USERINFO = re.compile(
    # A port with a path behind it is no password, however many @ the path has.
    r"""(?<![A-Za-z0-9+.-])(?P<before>[A-Za-z][A-Za-z0-9+.-]*://(?!\[)[^\s:/@?\#'"]*:)"""
    r"""(?!\d+/)[^\s'"<>]{0,2000}@"""
)
_ONLY_USER = re.compile(
    # A token may stand in place of a user.
    r"""(?<![A-Za-z0-9+.-])(?P<before>https?://)[^\s:/@?\#'"]{1,2000}(?=(:(x-oauth-basic)?)?@)""",
    re.IGNORECASE,
)
_QUERY = re.compile(r"""(?P<before>[?&;\#](?P<name>[\w%.-]+)=)[^\s&;,|'"\\)\]}\#]+""")
_ASSIGNED = re.compile(
    r"""(?<![\w%.-])(?P<name>[\w%.-]+)(?P<sign>\s*=\s*)"""
    r"""(?:(?P<three>\'{3}|"{3}).{0,2000}?(?P=three)|'(?:[^'\\]|\\.|''){0,2000}'"""
    r"""|"(?:[^"\\]|\\.){0,2000}"|(?:[^\s&;,|'"\\)\]}]|\\[^"'])+)""",
    re.DOTALL,
)
_IN_QUOTES = re.compile(
    r"""(?P<before>(?P<quote>\\?['"])(?P<name>[\w.-]+)(?P=quote)\s*:\s*)"""
    r"""(?P<mark>\\?['"])(?:(?!(?P=mark))(?:[^\\]|\\.)){0,2000}(?P=mark)"""
)
_WORD = (
    "(?:auth|authorization|authentication|cookie|token|secret|password|passwd|key|apikey|session"
    "|sid|signature|credentials?|jwt|assertion)"
)
_NAME = rf"(?:[a-z0-9]+[-_])*{_WORD}(?:[-_][a-z0-9]+)*"
"""The name of a header that may hold a secret. In a text, such a word and a colon may be our own
words."""
_HEADER = re.compile(
    rf"(?P<before>(?:(?<![\w-])(?:-H)?(?:(?:proxy-)?authorization|(?:set-)?cookie|api_?key"
    rf"|(?:[a-z0-9]+-)+{_WORD})|(?:(?<=headers=)|(?<=[|'\"])){_NAME}):[ \t]*)"
    r"[^\n|'\"\\]+?(?=\||, [a-z_]+=|['\"\n\\]|$)",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(?P<before>\bBearer )[A-Za-z0-9._~+/-]{8,}=*")
_LOGIN = re.compile(r"\A(?P<before>\s*(([^\s:/@]*:)?//)?[^\s:/@\[]*:(?!//)).*@", re.DOTALL)


def masked(text: str, secrets: Sequence[str] = ()) -> str:
    """Return the text without the secrets that show by their form, and without these `secrets`.

    By form: what stands between user and host of a URL, and values named password, token and the
    like, as in a URL's query, a DSN, TOML or a header of a request.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST:
            text = text.replace(secret, MASK)
    if "://" in text:
        text = _ONLY_USER.sub(rf"\g<before>{MASK}", text)
        text = _USERINFO.sub(rf"\g<before>{MASK}@", text)
    if "=" in text:
        text = _QUERY.sub(_without_parameter, text)
        text = _ASSIGNED.sub(_without_value, text)
    if "Bearer " in text:
        text = _BEARER.sub(rf"\g<before>{MASK}", text)
    if ":" in text:
        text = _HEADER.sub(rf"\g<before>{MASK}", text)
        if "'" in text or '"' in text:
            text = _IN_QUOTES.sub(_without_quoted, text)
    return text


def masked_header(line: str) -> str:
    """Return a header of a load's requests, without its value where that may be a secret."""
    name, mark, value = re.match(r"([^:\s]*)(:?\s*)(.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
    if value and _is_secret_header(name):
        return f"{name}{mark}{MASK}"
    return masked(line)


def masked_value(value: Any, name: str = "") -> Any:
    """Return the value of a file's key `name` as it may be shown: a text, number, list or table."""
    if isinstance(value, dict) and name == "headers":
        return {key: MASK if _is_secret_header(str(key)) else value[key] for key in value}
    if isinstance(value, dict):
        return {key: masked_value(item, str(key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [masked_value(item, name) for item in value]
    if _is_secret(name) and value not in ("", None):
        return MASK
    if name == "sudo" and isinstance(value, str) and len(value) > LONGEST_SWITCH:
        return MASK
    if not isinstance(value, str):
        return value
    if name == "headers":
        return masked_header(value)
    value = _ONLY_USER.sub(rf"\g<before>{MASK}", value)
    return masked(_LOGIN.sub(rf"\g<before>{MASK}@", value))


def masked_url(url: str) -> str:
    """Return a store's URL, or the name of its file, without its secrets.

    Only HARMLESS parameters keep their values. What is no URL may be a DSN that was mistaken for
    one, so it is masked, too.
    """
    scheme, mark, rest = url.partition("://")
    if not mark:
        return masked_value(url) if "@" in url else masked(url)
    start, end = _password(rest)
    shown = rest if end < 0 else f"{rest[:start]}{MASK}{rest[end:]}"
    place, question, query = shown.partition("?")
    if question:
        query = "&".join(
            f"{pair.partition('=')[0]}={MASK}" if _is_hidden(pair) else pair
            for pair in query.split("&")
        )
    return masked(f"{scheme}://{place}{question}{query}")


def secrets_of(url: str) -> tuple[str, ...]:
    """Return the secrets of a store's URL, as they stand there and as a database gets them.

    A password with an @ in it is taken apart by readers of URLs, so its parts count, too.
    """
    return tuple(
        dict.fromkeys(
            form
            for secret in _raw_secrets(url)
            for part in (secret, *re.split("[@/?]", secret))
            for form in (part, unquote_plus(part))
            if len(form) >= SHORTEST
        )
    )


def _raw_secrets(url: str) -> Iterator[str]:
    _, mark, rest = url.partition("://")
    if not mark:
        return
    start, end = _password(rest)
    if end >= 0:
        yield rest[start:end]
        rest = rest[end:]
    for pair in rest.partition("?")[2].split("&"):
        if _is_hidden(pair):
            yield pair.partition("=")[2]


def _password(rest: str) -> tuple[int, int]:
    """Return where the password begins and ends behind a URL's ://, (0, -1) where there is none.

    It ends at the last @ before the query, since nobody encodes all that should be.
    """
    colon, first = rest.find(":"), rest.find("@")
    if not 0 <= colon < first or "/" in rest[:colon] or "?" in rest[:colon]:
        return 0, -1
    query = rest.find("?", first)
    return colon + 1, rest.rfind("@", 0, query if query >= 0 else len(rest))


def _is_hidden(pair: str) -> bool:
    name, sign, value = pair.partition("=")
    return bool(sign and value) and unquote_plus(name).strip().lower() not in HARMLESS


def _is_secret(name: str) -> bool:
    plain = re.sub("[^a-z]", "", unquote_plus(name).lower())
    return plain.endswith(_SECRET_NAMES)


def _is_secret_header(name: str) -> bool:
    return bool(re.fullmatch(_NAME, name, re.IGNORECASE))


def _without_parameter(match: re.Match[str]) -> str:
    plain = re.sub("[^a-z]", "", unquote_plus(match["name"]).lower())
    return f"{match['before']}{MASK}" if plain.endswith(_IN_QUERIES) else match[0]


def _without_value(match: re.Match[str]) -> str:
    if not _is_secret(match["name"]):
        return match[0]
    return f"{match['name']}{match['sign']}{MASK}"


def _without_quoted(match: re.Match[str]) -> str:
    if not _is_secret(match["name"]):
        return match[0]
    return f"{match['before']}{match['mark']}{MASK}{match['mark']}"
