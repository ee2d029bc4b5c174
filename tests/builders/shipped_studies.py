"""The shipped studies that tests take their figures from."""

from dataclasses import replace
from functools import cache

from intop.config.study import Study, load_study
from intop.resources import shipped


@cache
def lab_study() -> Study:
    """The lab's two architectures, with the loads and the budget of the scenario bbr-backends.

    What the lab's own study says is chosen by its run time, and changes with that.
    """
    configs = shipped("configs")
    short = load_study(configs / "scenarios" / "bbr-backends.toml")
    lab = load_study(configs / "lab.toml")
    return replace(lab, workloads=short.workloads, budget=short.budget)
