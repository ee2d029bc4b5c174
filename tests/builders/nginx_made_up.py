"""Texts of nginx files that nobody would write, but somebody has."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from builders.nginx_files import catalogue
from intop.domain.nginx.directive import Directive
from intop.domain.nginx.permitted import PREFIX

BLANKS = (
    *(" ", " ", " ", "\n", "\t", "\r\n", "\r", "  \n ", "\n#\n", "\n#\\\n"),
    " # a { comment; 'x\n",
)
WORDS = (
    *("on", "80", "1m", "a#b", "a}b", 'a"b', "a'b", "a=b", "~*^/x", "é", "\\", "a\\", "\udcff"),
    *("$host", "${host}b", "$", "$$", "a$", "${a}${b}", "$\\{", "${{a}", "a${", "\ufeffx"),
    *("'b c'", '"d;e"', "'{'", '"}"', '""', "''", "'#'", '"a\nb"', "'it\\'s'", '"${x}"', '"$"'),
    *("\\;", "\\{", "\\}", "\\#", "\\'", '\\"', "\\ ", "\\\t", "\\\n", "a\\ b", "a\\tb", "\\n"),
    *("'a\\tb'", '"a\\\\"', "'\\x'", '"\\ "', "a\\\\b", "\\\\", "'a')", '"a")b', "'a')'b'", "a)b"),
    *("\x0b", "\x0c", "\xa0", "x\u2028y", "a\\\\;b", "'\\n'", "\\\\t", "'\\\\\\n'", "\\r", "(a"),
)
CHARACTERS = " \t\r\n;{}\"'\\#$()ab"


def statements(rng: random.Random) -> str:
    """Up to five statements of any words, and often one character too many or too few."""
    text = "".join(_statement(rng) for _ in range(rng.randrange(1, 6)))
    for _ in range(rng.choice((0, 0, 1, 2))):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(("", *CHARACTERS)) + text[at + rng.randrange(2) :]
    return text


def _statement(rng: random.Random) -> str:
    words = [_word(rng) for _ in range(rng.randrange(1, 5))]
    text = "".join(rng.choice(BLANKS) + word for word in words)
    return text + rng.choice(("", "", " ", "\n", "\r\n")) + ";"


def _word(rng: random.Random) -> str:
    if rng.random() < 0.2:
        return "".join(rng.choice(CHARACTERS) for _ in range(rng.randrange(1, 6)))
    word = rng.choice(WORDS)
    return word + rng.choice(WORDS) if rng.random() < 0.2 else word


# Whole configurations ---------------------------------------------------------------------------

UNKNOWN = "not known"
SECONDS_ONLY = {"ssl_session_timeout", "open_file_cache_valid", "open_file_cache"}
"""Directives that refuse ms."""
ODD: Mapping[str, Sequence[tuple[str, Mapping[str, str]]]] = {
    "main": (
        ("worker_priority 0; worker_priority 5;", {"main.worker_priority": "5"}),
        ("worker_priority +3;", {"main.worker_priority": "3"}),
        ("worker_processes auto;", {"main.worker_processes": "2"}),
        ("thread_pool default threads=4 threads=9;", {"main.thread_pool.threads": "9"}),
        ("thread_pool other threads=4;", {"main.thread_pool.threads": "32"}),
        ("worker_cpu_affinity auto 01;", {"main.worker_cpu_affinity": UNKNOWN}),
    ),
    "http": (
        ("open_file_cache max=5 max=7;", {"http.open_file_cache.max": "7"}),
        ("open_file_cache off max=7;", {"http.open_file_cache.max": "0"}),
        ("open_file_cache max=7 off;", {"http.open_file_cache.max": "0"}),
        ("open_file_cache inactive=7s max=9;", {"http.open_file_cache.inactive": "7"}),
        ("access_log a.log combined gzip;", {"http.access_log": "on"}),
        ("access_log a.log combined gzip flush=5s;", {"http.access_log": "on"}),
        (
            "access_log a.log combined buffer=4k buffer=8k;",
            {"http.access_log.buffer": "8", "http.access_log.flush": "0"},
        ),
        ("access_log a.log; access_log b.log combined;", {"http.access_log": "on"}),
        ("access_log syslog:server=127.0.0.1;", {"http.access_log": "on"}),
        ("access_log a.log; access_log off;", {"http.access_log": "off"}),
        ("access_log off; access_log a.log;", {"http.access_log": "off"}),
        (
            "ssl_session_cache shared:a:1m; ssl_session_cache shared:b:2m;",
            {"http.ssl_session_cache": "2"},
        ),
        ("ssl_session_cache shared:a:1m shared:b:2m;", {"http.ssl_session_cache": "2"}),
        ("ssl_session_cache off shared:a:2m;", {"http.ssl_session_cache": "0"}),
        ("ssl_session_cache shared:a:2m none;", {"http.ssl_session_cache": "0"}),
        ("ssl_session_cache builtin:100 shared:a:2m;", {"http.ssl_session_cache": "2"}),
        ("directio 4M;", {"http.directio": "4m"}),
        ("connection_pool_size 1k;", {"http.connection_pool_size": "1024"}),
        ("lingering_close ALWAYS;", {"http.lingering_close": "always"}),
        ("types { sendfile on; text/html keepalive_timeout; }", {}),
        ("map $uri $x { sendfile off; include 'names*.map'; }", {}),
        ("split_clients $uri $y { 50% tcp_nodelay; * off; }", {}),
        ("geo $z { 127.0.0.1 access_log; default 0; }", {}),
        ("log_format l 'a; b {' '\\t' \"}\";", {}),
    ),
}
"""Statements of one block, with what they come to; UNKNOWN where intop should not be sure."""
LISTENS = (
    ("18201",),
    ("*:18201", "18202"),
    ("127.0.0.1:18201", "[::1]:18201"),
    ("18201 backlog=5 backlog=6",),
    ("018201 reuseport",),
    ("127.0.0.1:18202-18204", "18205 rcvbuf=8K"),
    ("localhost:18206",),
    ("unix:odd.sock", "18207 so_keepalive=30m::10"),
    ("[0:0::1]:18201", "127.0.0.1:18202 deferred"),
    ("[::]:18201 ipv6only=on", "18203"),
    ("'18201' default_server", "127.0.0.1:18203 'backlog=99'"),
    ("127.0.0.1:18443 ssl", "18444 ssl http2"),
)


@dataclass
class MadeUp:
    """Files by path below a folder, and what some directives come to by their keys."""

    texts: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)


class _Author:
    """Writes files."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.made = MadeUp()
        self.levels = {
            level: [d for d in catalogue().by_key.values() if d.level == level]
            for level in ("main", "events", "http", "upstream")
        }

    def write(self) -> MadeUp:
        rng, texts = self.rng, self.made.texts
        texts["names.map"] = "a b;\ninclude 'more.map';"
        texts["more.map"] = "keepalive_timeout 5;"
        texts["snippets/shared.conf"] = self._ended(self._some("http", 2, context="location"))
        http = self._some("http", rng.randrange(9), exact=True)
        http += self._odd("http")
        listens = rng.sample(LISTENS, rng.randrange(1, 4))
        servers = [self._server(addresses) for addresses in listens]
        upstream = self._some("upstream", rng.randrange(3))
        sites = [f"upstream u {{ server 127.0.0.1:1;{self._gap()}{self._joined(upstream)}}}"]
        for n, server in enumerate(servers):
            if rng.random() < 0.5:
                texts[f"sites/{n}.conf"] = server
            else:
                sites.append(server)
        sites.append(rng.choice(("include sites/*.conf;", "include 'sites/[0-9].conf' ;")))
        texts["sites/none.txt"] = "no text of nginx {"
        if rng.random() < 0.5:
            texts["conf.d/http.conf"] = self._ended(http)
            http = [rng.choice(("include conf.d/*.conf;", "include conf.d/http.conf;"))]
        body = self._joined([*http, *sites])
        main = self._odd("main") + self._some("main", rng.randrange(3), exact=True)
        events = self._some("events", rng.randrange(3), exact=True)
        texts["nginx.conf"] = self._crooked(
            f"user root; pid nginx.pid; error_log stderr;\n{self._joined(main)}"
            f"events{self._gap()}{{{self._joined(events)}}}\nhttp {{{body}}}"
        )
        return self.made

    def _server(self, addresses: Sequence[str]) -> str:
        rng = self.rng
        lines = [f"listen {text};" for text in addresses]
        lines += ["ssl_certificate pair.pem; ssl_certificate_key pair.pem;"]
        lines += self._some("http", rng.randrange(3), context="server")
        inner = self._some("http", rng.randrange(3), context="location")
        if rng.random() < 0.3:
            inner = ["include snippets/shared.conf;"]
        inner.append("if ($uri ~ '^/a{1,3}$') { sendfile off; }")
        inner.append("location /a/b { proxy_pass http://u; }")
        lines.append(f"location /a {{{self._gap()}{self._joined(inner)}}}")
        return f"server {{{self._gap()}{self._joined(lines)}}}"

    def _odd(self, block: str) -> list[str]:
        """Odd statements, no two of one directive."""
        lines: dict[str, str] = {}
        for text, values in self.rng.sample(ODD[block], self.rng.choice((0, 1, 1, 2))):
            name = text.split()[0]
            keys = {f"{PREFIX}{key}": value for key, value in values.items()}
            if name not in lines and not self.made.values.keys() & keys:
                lines[name] = text
                self.made.values |= keys
        return list(lines.values())

    def _some(self, level: str, count: int, *, exact: bool = False, context: str = "") -> list[str]:
        """Statements of some directives, each once."""
        chosen: dict[str, Directive] = {}
        for directive in self.rng.sample(self.levels[level], len(self.levels[level])):
            fits = not context or context in directive.contexts
            is_free = directive.key not in self.made.values or not exact
            if len(chosen) < count and directive.inserted and fits and is_free:
                chosen.setdefault(directive.name, directive)
        return [self._one(d, exact=exact) for d in chosen.values()]

    def _one(self, directive: Directive, *, exact: bool) -> str:
        parts = [d for d in self.levels[directive.level] if d.name == directive.name]
        words = [directive.name, *directive.fixed]
        ordered = sorted((d for d in parts if d.inserted), key=lambda d: d.argument)
        for part in ordered:
            value, text = self._value(part)
            if part.option:
                text = f"{part.option}={text}"
            elif part.zone:
                text = f"shared:SSL:{text}"
            words.append(text)
            if exact:
                self.made.values[part.key] = value
        return self._gap().join(self._quoted(word) for word in words) + ";"

    def _value(self, directive: Directive) -> tuple[str, str]:
        rng, parameter = self.rng, directive.parameter
        if not parameter.is_numeric:
            value = rng.choice([c for c in parameter.choices if c not in ("none", "default", "on")])
            if directive.as_is is not None:
                value = "off"
            return value, value.upper() if value == "off" and parameter.kind == "boolean" else value
        (numbers,) = parameter.components
        value = int(rng.choice((numbers.low, numbers.high, rng.randint(numbers.low, numbers.high))))
        if directive.name.startswith("proxy_"):
            value = 16 if directive.argument != 1 else 8
        return str(value), rng.choice(_spelled(value, parameter.unit, directive.name))

    # Blanks, quotes, comments --------------------------------------------------------------------

    def _gap(self) -> str:
        return self.rng.choice((" ", " ", "  ", "\n", "\t", "\r\n", " # } ; ' \"\n"))

    def _quoted(self, word: str) -> str:
        quote = self.rng.choice(("'", '"') if " " in word else ("", "", "", "'", '"'))
        return f"{quote}{word}{quote}"

    def _joined(self, lines: Sequence[str]) -> str:
        return "".join(line + self.rng.choice(("\n", " ", "", "\r\n", " # }\n")) for line in lines)

    def _ended(self, lines: Sequence[str]) -> str:
        return self._joined(lines) + self.rng.choice(("", "\n", "# end", "\r\n\r\n"))

    def _crooked(self, text: str) -> str:
        return text + self.rng.choice(("", "\n", "\n# \udcff\x0c\u2028 {"))


def _spelled(value: int, unit: str, name: str) -> list[str]:
    text = str(value)
    if unit == "KiB":
        larger = [f"{value // 1024}m", f"{value // 1024}M"] if value % 1024 == 0 else []
        return [f"{text}k", f"{text}K", f"0{value * 1024}", *larger]
    if unit == "MiB":
        return [f"{text}m", f"{text}M", f"{value * 1024}k"]
    if unit == "bytes":
        return [text, f"0{text}", *([f"{value // 1024}k"] if value % 1024 == 0 else [])]
    if unit == "s":
        whole = [f"{value // 60}m{value % 60}s", f"{value // 60}m {value % 60}", f"{text}s", text]
        return whole + ([] if name in SECONDS_ONLY else [f"{value * 1000}ms"])
    return [f"{text}ms"] if unit == "ms" else [text]


def configuration(rng: random.Random) -> MadeUp:
    """The files of one nginx."""
    return _Author(rng).write()
