"""The campaign that `intop tune` goes on with."""

import os
import time
from pathlib import Path

import pytest

from builders.campaigns import begun
from intop.cli.tune import _campaign_to_tune
from intop.config.study import load_study
from intop.store import opened


@pytest.mark.parametrize(
    ("age_s", "is_newer"), [(3600, False), (-60, True)], ids=["older file", "newer file"]
)
def test_a_finished_campaign_says_that_it_measures_only_what_it_lacks(
    study: Path, capsys: pytest.CaptureFixture[str], age_s: float, is_newer: bool
) -> None:
    campaign, _ = begun(study.parent, ["ok"])
    at = time.time() - age_s
    os.utime(study, (at, at))
    loaded = load_study(study)
    with opened(loaded.store) as store:
        assert _campaign_to_tune(store, loaded, new=False, resume=True) == campaign
        assert capsys.readouterr().err == ""
        store.finish(campaign)
        _campaign_to_tune(store, loaded, new=False, resume=True)
    notice = capsys.readouterr().err
    assert "campaign 1 is finished: intop measures only stages that it has not yet" in notice
    assert is_newer == ("was changed since. To use all of it, run: intop tune --new" in notice)
