"""Archives as the kernel reads them."""

import io
import stat

from intop.lab import cpio


def read(archive: bytes) -> dict[str, tuple[int, bytes, tuple[int, int]]]:
    """Mode, content and device of each entry, by the format's own description."""
    result = {}
    at = 0
    while True:
        header = archive[at : at + 110]
        assert header[:6] == b"070701"
        fields = [int(header[6 + 8 * n : 14 + 8 * n], 16) for n in range(13)]
        mode, uid, gid, mtime = fields[1], fields[2], fields[3], fields[5]
        assert (uid, gid, mtime) == (0, 0, 0)
        length, device, name_length = fields[6], (fields[9], fields[10]), fields[11]
        name = archive[at + 110 : at + 110 + name_length - 1].decode()
        start = at + (110 + name_length + 3) // 4 * 4
        if name == "TRAILER!!!":
            assert start == len(archive)
            return result
        result[name] = (mode, archive[start : start + length], device)
        at = start + (length + 3) // 4 * 4


def written(entries: dict[str, cpio.Entry]) -> bytes:
    output = io.BytesIO()
    cpio.write(output, cpio.with_parents(entries))
    return output.getvalue()


def test_what_is_written_reads_back() -> None:
    archive = written(
        {
            "usr/bin/a": cpio.file(b"12345", 0o755),
            "bin": cpio.link("usr/bin"),
            "tmp": cpio.folder(0o1777),
            "dev/console": cpio.character_device(5, 1),
        }
    )
    result = read(archive)
    assert result["usr/bin/a"] == (stat.S_IFREG | 0o755, b"12345", (0, 0))
    assert result["bin"] == (stat.S_IFLNK | 0o777, b"usr/bin", (0, 0))
    assert result["tmp"] == (stat.S_IFDIR | 0o1777, b"", (0, 0))
    assert result["dev/console"] == (stat.S_IFCHR | 0o600, b"", (5, 1))


def test_folders_come_before_what_is_in_them_and_need_not_be_named() -> None:
    paths = list(read(written({"a/b/c/file": cpio.file(b""), "a/b": cpio.folder(0o700)})))
    assert paths == ["a", "a/b", "a/b/c", "a/b/c/file"]


def test_the_same_entries_make_the_same_archive() -> None:
    one = {"a": cpio.file(b"1"), "b": cpio.file(b"2")}
    assert written(one) == written(dict(reversed(one.items())))
