import numpy as np
import pytest

from intop.domain.encoding import Matrix
from intop.learn.fitness import Fitness
from intop.learn.surrogate import Predictor


class Fixed(Predictor):
    """Two models: a forest of two trees, and one that says the same everywhere."""

    def members(self, values: Matrix) -> dict[str, Matrix]:
        trees = np.array([values[:, 0], values[:, 0] + 2 * values[:, 1]])
        return {"RFR": trees, "XGBoost": np.full((1, len(values)), 4.0)}


VALUES = np.array([[4.0, 0.0], [6.0, 0.0], [4.0, 1.0]])


def test_the_prediction_is_the_mean_of_the_models() -> None:
    message = Fitness(Fixed({}), weight=3.0)(VALUES)
    assert message.log_latency.tolist() == [4.0, 5.0, 4.5]


def test_spread_is_of_disagreement_and_of_a_forests_trees() -> None:
    message = Fitness(Fixed({}))(VALUES)
    # Models at 4 and 6; models at 4 and 5, of which the latter has trees at 4 and 6.
    assert [0.0, 1.0, np.sqrt(0.25 + 0.5)] == pytest.approx(message.spread.tolist())


@pytest.mark.parametrize("weight", [0.0, 0.5, 2.0])
def test_the_penalty_is_so_many_spreads(weight: float) -> None:
    message = Fitness(Fixed({}), weight)(VALUES)
    assert message.score == pytest.approx(message.log_latency + weight * message.spread)
