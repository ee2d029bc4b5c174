from pathlib import Path

import pytest

from intop.learn import revision as revisions


def test_a_change_of_the_code_or_of_a_library_is_another_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn, domain = tmp_path / "learn", tmp_path / "domain"
    (learn / "families").mkdir(parents=True)
    domain.mkdir()
    for file in (learn / "tuning.py", learn / "families" / "forest.py", domain / "encoding.py"):
        file.write_text("")
    monkeypatch.setattr(revisions, "__file__", str(learn / "revision.py"))

    def found() -> str:
        return str(revisions.revision.__wrapped__())

    first = found()
    assert first == found()
    (learn / "families" / "forest.py").write_text("trees = 7")
    second = found()
    monkeypatch.setattr(revisions, "version", lambda _: "0.0")
    assert 3 == len({first, second, found()})
