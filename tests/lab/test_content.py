"""The static files: how many, how large, and always the same."""

import hashlib
import json
import zlib
from pathlib import Path
from statistics import mean

from intop.lab import content

FILES = content.static_files()


def test_there_are_enough_files_of_mixed_kinds() -> None:
    kinds = {path.rpartition(".")[2] for path in FILES}
    assert kinds == {"html", "css", "js", "json", "svg", "png", "jpg", "woff2"}
    assert len(content.static_paths()) == 24
    assert {path.removeprefix("/") for path in content.static_paths()} == set(content.SIZES_KB)


def test_large_files_are_there_and_in_no_mix() -> None:
    assert {len(FILES[path]) // 1024 for path in content.LARGE_KB} == {256, 384, 512, 1024, 4096}
    others = (*content.LARGE_KB, *content.ONE_SIZE_KB)
    assert not {f"/{path}" for path in others} & set(content.static_paths())


def test_sizes_are_those_that_are_declared() -> None:
    result = {path: len(data) / 1024 for path, data in FILES.items()}
    assert result == {**content.SIZES_KB, **content.LARGE_KB, **content.ONE_SIZE_KB}
    sizes_kb = content.SIZES_KB
    assert (min(sizes_kb.values()), max(sizes_kb.values())) == (2, 120)
    assert 33 <= mean(sizes_kb.values()) <= 36


def test_the_content_never_changes() -> None:
    everything = b"".join(FILES[path] for path in sorted(content.SIZES_KB))
    assert hashlib.sha256(everything).hexdigest() == (
        "fbe0bff5ad4f3d5dc2fa1cbfa0dbc3debf48607ba055b4db5403bebfdb024cb5"
    )


def test_images_and_fonts_do_not_compress_and_texts_do() -> None:
    for path, data in FILES.items():
        ratio = len(zlib.compress(data)) / len(data)
        packed = path.endswith((".png", ".jpg", ".woff2"))
        assert ratio > 0.99 if packed else ratio < 0.5, path


def test_json_files_are_json() -> None:
    assert all(json.loads(data) for path, data in FILES.items() if path.endswith(".json"))


def test_files_are_written_readable_for_the_web_server(tmp_path: Path) -> None:
    content.write_static_files(tmp_path)
    written = {
        "/" + str(file.relative_to(tmp_path)): file.stat().st_mode & 0o777
        for file in tmp_path.rglob("*")
        if file.is_file()
    }
    assert written == {f"/{path}": 0o644 for path in FILES}


def test_further_files_have_their_sizes_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    files = (("/", 1.5), ("/a", 0.25), ("/a/b%20c", 2.0))
    for folder in ("one", "two"):
        content.write_static_files(tmp_path / folder, files)
    sizes = {".lab": 1500, "a.lab": 250, "a/b c.lab": 2000}
    for name, size in sizes.items():
        first, second = ((tmp_path / folder / name).read_bytes() for folder in ("one", "two"))
        assert first == second
        assert len(first) == size
