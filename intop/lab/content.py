"""The static files that the backends serve: the same bytes on every machine and every day."""

import json
import random
from collections.abc import Mapping
from pathlib import Path

from intop.domain.lab_files import ENDING, WAITS_ENDING, LabFiles, LabWaits, file_name

KB = 1024
SIZES_KB: Mapping[str, float] = {
    "index.html": 14,
    "about.html": 6,
    "news/archive.html": 38,
    "news/today.html": 22,
    "css/site.css": 28,
    "css/print.css": 3,
    "js/app.js": 88,
    "js/menu.js": 9,
    "js/chart.js": 64,
    "data/prices.json": 18,
    "data/places.json": 46,
    "img/logo.svg": 4,
    "img/map.svg": 26,
    "img/icon-1.png": 2,
    "img/icon-2.png": 5,
    "img/banner.png": 56,
    "img/photo-1.jpg": 120,
    "img/photo-2.jpg": 96,
    "img/photo-3.jpg": 72,
    "img/thumb-1.jpg": 7,
    "img/thumb-2.jpg": 11,
    "img/thumb-3.jpg": 16,
    "fonts/text.woff2": 34,
    "fonts/title.woff2": 41,
}
"""Paths and sizes, 2 to 120 KB, 34 KB on average: a page's parts, few of them large."""

LARGE_KB: Mapping[str, float] = {
    "download/part-1.jpg": 1024,
    "download/part-2.jpg": 1024,
    "download/part-3.jpg": 1024,
    "download/part-4.jpg": 1024,
    "download/photo-1.jpg": 256,
    "download/photo-2.jpg": 256,
    "download/photo-3.jpg": 384,
    "download/photo-4.jpg": 512,
    "download/film.jpg": 4096,
}
"""Large responses, for a workload that names them in its `paths`; no part of the usual mix."""

ONE_SIZE_KB: Mapping[str, float] = {
    "size/1k.jpg": 1,
    "size/10k.jpg": 10,
    "size/100k.jpg": 100,
    "size/1m.jpg": 1024,
    "size/10m.jpg": 10240,
}
"""One file of each size, for a sweep over files; no part of the usual mix either."""

TYPES: Mapping[str, str] = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "json": "application/json",
    "svg": "image/svg+xml",
    "png": "image/png",
    "jpg": "image/jpeg",
    "woff2": "font/woff2",
}
"""The servers' names for them, by the end of the name."""

_MAGIC: Mapping[str, bytes] = {
    "png": b"\x89PNG\r\n\x1a\n",
    "jpg": b"\xff\xd8\xff\xe0",
    "woff2": b"wOF2",
}
"""The beginnings of formats that are compressed already; random bytes follow."""

_WORDS = (
    *("queue", "latency", "window", "buffer", "packet", "backlog", "socket", "segment"),
    *("carrier", "harbour", "timber", "orchard", "kettle", "window-sill", "copper", "granite"),
    *("meadow", "river", "lantern", "compass", "voyage", "market", "ledger"),
)


def static_files() -> dict[str, bytes]:
    """Return the content of each path (without a leading slash)."""
    sizes = {**SIZES_KB, **LARGE_KB, **ONE_SIZE_KB}
    return {path: _file(path, round(size * KB)) for path, size in sizes.items()}


def static_paths() -> tuple[str, ...]:
    """Return the paths of the usual mix, as a request names them."""
    return tuple(f"/{path}" for path in SIZES_KB)


def write_static_files(folder: Path, files: LabFiles = (), waits: LabWaits = ()) -> None:
    """Write all files below `folder`, and further ones, readable for the web server's own user.

    Beside a file that the application answers with, there is one of its waits.
    """
    further = {file_name(path): _random_bytes(path, kb) for path, kb in files}
    for path, weights in waits:
        name = file_name(path).removesuffix(ENDING) + WAITS_ENDING
        further[name] = json.dumps(weights).encode()
    for path, content in (static_files() | further).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(0o644)
    for inner in (folder, *(entry for entry in folder.rglob("*") if entry.is_dir())):
        inner.chmod(0o755)


def _random_bytes(path: str, kb: float) -> bytes:
    """Return so many KB (1,000 bytes) that no server can compress, the same each time."""
    return random.Random(path).randbytes(max(1, round(1000 * kb)))


def _file(path: str, size: int) -> bytes:
    source = random.Random(path)
    kind = path.rpartition(".")[2]
    if kind in _MAGIC:
        return _MAGIC[kind] + source.randbytes(size - len(_MAGIC[kind]))
    before, after = _FRAMES[kind]
    lines = []
    room = size - len(before) - len(after)
    while room > 0:
        line = _line(kind, source)[:room]
        # What cuts the last line short must not cut a construct open.
        line = line if len(line) < room else " " * (room - 1) + "\n"
        lines.append(line)
        room -= len(line)
    return (before + "".join(lines) + after).encode("ascii")


_FRAMES: Mapping[str, tuple[str, str]] = {
    "html": (
        '<!doctype html>\n<html lang="en"><head><title>intop lab</title></head><body>\n',
        "</body></html>\n",
    ),
    "css": ("/* intop lab */\n", "/* end */\n"),
    "js": ('"use strict";\nconst parts = [];\n', "export { parts };\n"),
    "json": ("[\n", '{"end": true}]\n'),
    "svg": ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 999 999">\n', "</svg>\n"),
}


def _line(kind: str, source: random.Random) -> str:
    word, second = source.choice(_WORDS), source.choice(_WORDS)
    number, more = source.randrange(1000), source.randrange(1000)
    match kind:
        case "html":
            text = " ".join(source.choices(_WORDS, k=12))
            return f'<p class="{word}-{number}">{text}.</p>\n'
        case "css":
            return f".{word}-{number} .{second} {{ margin: {more}px; padding: {number}px }}\n"
        case "js":
            return f'parts.push({{ name: "{word}-{second}", at: {number}, size: {more} }});\n'
        case "json":
            return f'{{"name": "{word} {second}", "number": {number}, "value": {more}.5}},\n'
        case _:
            return f'<circle cx="{number}" cy="{more}" r="{len(word)}" class="{second}"/>\n'
