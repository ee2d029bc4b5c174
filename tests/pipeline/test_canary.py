"""A canary on a real lab, whose traffic is not intop's: the switches, a harm, and what is left."""

import json
import re
from statistics import fmean

import pytest

from kit.canaries import (
    ALGORITHM,
    DOWNLOADS,
    KEY,
    NO_LIMIT,
    OWN,
    TRIED,
    VERY_SLOW,
    Make,
    canary,
    made,
    traffic,
    value,
)
from kit.studies import wait_for


def test_values_switch_on_real_traffic_and_nothing_is_left(make_study: Make) -> None:
    study = made(make_study)
    words = canary("--pairs", "3", *NO_LIMIT)
    with traffic(study):
        process = study.start(*words)
        wait_for(lambda: value(study) == TRIED, "the configuration")
        wait_for(lambda: value(study) == OWN, "the default again")
        out, err = process.communicate(timeout=300)
    assert process.returncode == 3, err
    result = json.loads(out)
    assert (result["outcome"], result["pairs"], result["only_new"]) == ("undecided", 3, True)
    assert result["requests"] > 500
    assert result["canary_requests"] > 500
    assert value(study) == OWN
    # All of it is stored.
    assert json.loads(study.run(*words, expected=(3,))[0]) == result


def test_a_harm_is_stopped_and_undone_at_once(make_study: Make) -> None:
    study = made(make_study)
    with traffic(study, word=TRIED, program=VERY_SLOW):
        process = study.start(*canary("--pairs", "20"))
        out, err = process.communicate(timeout=300)
    assert process.returncode == 1, err
    result = json.loads(out)
    assert (result["outcome"], result["pairs"]) == ("harm", 0)
    assert re.search(r"-lb: (P99 was|only) ", result["stopped"])
    assert value(study) == OWN


def test_a_gain_can_be_kept_and_rolled_back(make_study: Make) -> None:
    """The clients are slow with the default, which is what a gain looks like."""
    study = made(make_study)
    with traffic(study, word=OWN):
        out, err = study.run(*canary("--pairs", "12", *NO_LIMIT, "--keep", "--connections", "all"))
        assert json.loads(out)["outcome"] == "gain"
        assert "keeps mine until its next reboot" in err
        assert value(study) == TRIED
        assert f"{KEY}   {OWN}       {TRIED}" in study.run("status")[0]
        study.run("rollback")
    assert value(study) == OWN


@pytest.mark.long
def test_a_killed_controller_leaves_the_host_its_own_values_and_the_canary_goes_on(
    make_study: Make,
) -> None:
    study = made(make_study)
    with traffic(study):
        process = study.start(*canary("--pairs", "2", *NO_LIMIT))
        wait_for(lambda: value(study) == TRIED, "the configuration")
        process.kill()
        process.communicate()
        wait_for(lambda: value(study) == OWN, "the watchdog")
        out, _ = study.run(*canary("--pairs", "2", *NO_LIMIT), expected=(3,))
    assert json.loads(out)["pairs"] == 2


LOSSY = "{ delay_ms = 15, loss_percent = 1, up = { delay_ms = 15 } }"


@pytest.mark.long
def test_congestion_control_is_judged_by_the_kernels_tcp_info(make_study: Make) -> None:
    """Clients that intop does not control, behind a link that loses one packet in a hundred."""
    study = made(make_study, link=LOSSY)
    own = study.balancer(f"sysctl -n {ALGORITHM}").strip()
    words = ("--configuration", "bbr", "--block-s", "6", "--washout-s", "2", "--keep", "--json")
    log = study.folder / "clients.log"
    with traffic(study, str(log), DOWNLOADS):
        out, err = study.run("canary", *words, "--pairs", "12", *NO_LIMIT)
    result = json.loads(out)
    sides = {side["quantity"]: side for side in result["sides"]}
    assert own == "cubic"
    assert (result["outcome"], result["judged_by"]) == ("gain", "delivery time"), sides
    assert sides["delivery time"]["high"] < 1
    assert sides["delivery time"]["default"] > 50  # ms/MB: 100 KB take several round trips
    assert sides["P99"]["limit"] is None
    # The clients' own times, which intop does not see.
    noted: dict[str, list[float]] = {"cubic": [], "bbr": []}
    for line in log.read_text().splitlines():
        algorithm, ms = line.split()
        noted[algorithm].append(float(ms))
    clients = fmean(noted["bbr"]) / fmean(noted["cubic"])
    print(f"clients' mean {clients:.2f}, {result['sides']}")
    assert clients < 0.9
    assert sides["delivery time"]["ratio"] == pytest.approx(clients, rel=0.5)
    assert sides["retransmitted segments"]["default"] > 0.002
    assert "The verdict uses delivery time by TCP_INFO" in err
    # What clients notice may stay.
    assert "keeps bbr until its next reboot" in err
    assert study.balancer(f"sysctl -n {ALGORITHM}").strip() == "bbr"
    study.run("rollback")
    assert study.balancer(f"sysctl -n {ALGORITHM}").strip() == own


METRIC = """
[canary.metrics.waiting]
better = "lower"
command = '''tail -n 300 LOG | awk '{ sum += 1000 * $NF } END { print 1 + sum / NR }' '''
"""


def test_a_metric_of_the_users_own_is_asked_on_the_host(make_study: Make) -> None:
    study = made(make_study, more=METRIC)
    words = ("--pairs", "1", *NO_LIMIT, "--connections", "all")
    with traffic(study, word=TRIED):
        out, err = study.run(*canary(*words), expected=(3,))
    (side,) = (side for side in json.loads(out)["sides"] if side["quantity"] == "waiting")
    assert side["ratio"] > 2, err
    assert (side["better"], side["limit"]) == ("lower", 1.001)
    assert value(study) == OWN


def test_a_metric_without_a_number_is_refused_before_anything_is_set(make_study: Make) -> None:
    study = made(make_study, more=METRIC.replace("LOG", "/nowhere"))
    _, err = study.run(*canary("--pairs", "1"), expected=(2,))
    assert "[canary.metrics.waiting]: exit code 2" in err
    assert "then run: intop canary" in err
    assert study.trials("canary") == []
