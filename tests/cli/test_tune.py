"""The campaign that `intop tune` goes on with."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from builders.campaigns import begun
from intop.cli.tune import _campaign_to_tune
from intop.config.study import load_study
from intop.errors import AtWorkError
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


def test_no_campaign_begins_while_another_process_measures_on_the_hosts(study: Path) -> None:
    _, subject = begun(study.parent, ["ok"])
    loaded = load_study(study)
    with opened(loaded.store) as store:
        store.activities.take(subject, "collect")
        with pytest.raises(AtWorkError, match="campaign 1 is at work on the same hosts"):
            _campaign_to_tune(store, loaded, new=True, resume=False)
        assert len(store.campaigns()) == 1
        workers = replace(loaded, workers=True)
        assert _campaign_to_tune(store, workers, new=True, resume=False).id == 2
