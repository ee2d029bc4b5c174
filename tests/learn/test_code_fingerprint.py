from pathlib import Path

import pytest

from intop.learn import code_fingerprint as fingerprints


def test_a_change_of_the_code_or_of_a_library_has_another_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn, domain = tmp_path / "learn", tmp_path / "domain"
    (learn / "families").mkdir(parents=True)
    domain.mkdir()
    for file in (learn / "tuning.py", learn / "families" / "forest.py", domain / "encoding.py"):
        file.write_text("")
    monkeypatch.setattr(fingerprints, "__file__", str(learn / "code_fingerprint.py"))

    def found() -> str:
        return str(fingerprints.code_fingerprint.__wrapped__())

    first = found()
    assert first == found()
    (learn / "families" / "forest.py").write_text("trees = 7")
    second = found()
    monkeypatch.setattr(fingerprints, "version", lambda _: "0.0")
    assert len({first, second, found()}) == 3
