"""Ask a question: `python -m benchmarks NAME [options]`. Without a name they are listed."""

import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from benchmarks.harness import Question, ask

QUESTIONS = {
    "ablation": "ablation.Simulated",
    "ablation-lab": "ablation.OnLab",
    "canary": "canary.Canaries",
    "canary-aa": "canary_lab.RealAA",
    "canary-planted": "canary_planted.Planted",
    "canary-reader": "canary_reader.ReaderCost",
    "canary-winners": "canary_winners.CanaryWinners",
    "directives": "directives.Directives",
    "directives-effect": "directives.Effects",
    "far-tail": "far_tail.FarTail",
    "interval-methods": "interval_methods.IntervalMethods",
    "learned": "learned.Learned",
    "log-reading": "log_reading.LogReading",
    "mechanisms": "mechanisms.Mechanisms",
    "models": "models.Models",
    "modes-models": "modes.DrawnModels",
    "modes-search": "modes.ModeSearch",
    "planted-logs": "planted_logs.PlantedLogs",
    "published": "published.Published",
    "rate": "rate.Rate",
    "recorded-lateness": "recorded_lateness.RecordedLateness",
    "screening": "screening.Screenings",
    "screening-hidden": "screening.Hidden",
    "screening-tables": "screening.Tables",
    "screening-truth": "screening_truth.ScreeningTruth",
    "search": "search.Search",
    "search-algorithms": "search_speed.Algorithms",
    "search-rivals": "search_rivals.Rivals",
    "search-noise": "search_noise.NoisySearch",
    "search-speed": "search_speed.Speed",
    "startup": "startup.Startup",
    "truth": "truth.Truth",
    "truth-look": "truth.Look",
    "trim": "trim.Trim",
    "tuners": "tuners.Tuners",
    "tuners-pool": "tuners.Pool",
    "verdicts-aa": "verdicts.AA",
    "verdicts-planted": "verdicts.Planted",
    "winners": "winners.Winners",
}
"""The class of each question, by the name that is typed."""


def question(name: str) -> type[Question[Any, Any]]:
    """Return the class of a question."""
    module, _, kind = QUESTIONS[name].partition(".")
    found: type[Question[Any, Any]] = getattr(import_module(f"benchmarks.{module}"), kind)
    return found


def main(words: Sequence[str]) -> str | int | None:
    """Return the exit code, or the message of a failure."""
    if not words or words[0] not in QUESTIONS:
        return f"python -m benchmarks NAME [options], NAME one of: {', '.join(QUESTIONS)}"
    name, *options = words
    return ask(name, question(name), options)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a lab is taken down all the same
    sys.exit(main(sys.argv[1:]))
