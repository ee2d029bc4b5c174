"""Fitness: what a search makes as low as it can, where models are not equally sure everywhere."""

from dataclasses import dataclass

import numpy as np

from intop.domain.encoding import Matrix
from intop.learn.samples import Vector
from intop.learn.surrogate import Predictor

PENALTY = 1.0
"""Standard deviations of log latency that a configuration is held to be worse than predicted.

benchmarks/results/models.md compares other weights."""


@dataclass(frozen=True)
class Estimate:
    """Predictions of n configurations, each array (n,).

    `log_latency` is the prediction itself, `spread` its standard deviation, `score` what they are
    ranked by: the lower the better.
    """

    log_latency: Vector
    spread: Vector
    score: Vector


@dataclass(frozen=True)
class Fitness:
    """The mean of all models' log latency, and a penalty of `weight` standard deviations of it.

    The variance is that between the models, and the mean of those within them, by the law of total
    variance as in Hutter et al. (Artificial Intelligence 206, 2014, 79-111, section 4.3.2). Only a
    forest has members that tell one; its share is that of one model among all.
    """

    predictor: Predictor
    weight: float = PENALTY

    def __call__(self, values: Matrix) -> Estimate:
        """Estimates for values (n, variables): one call for a whole population."""
        members = list(self.predictor.members(values).values())
        means = np.array([of_model.mean(axis=0) for of_model in members])
        within = np.mean([of_model.var(axis=0) for of_model in members], axis=0)
        log_latency = means.mean(axis=0)
        spread = np.sqrt(means.var(axis=0) + within)
        return Estimate(log_latency, spread, log_latency + self.weight * spread)
