"""The headline figures of the paper whose method this is, as data.

Chen, Li, Yu: INTOP compared on X86 and ARM, Journal of Integration Technology, 2024. Its clusters
have five servers each; the load balancer is a Xeon Silver 4214 or a Kunpeng 920-4826, under wrk2
at 10,000 requests/s. It reports no repeated measurements, so there are no intervals.
"""

from collections.abc import Mapping

ByArch = Mapping[str, float]
ByWorkload = Mapping[str, Mapping[str, int]]

ERRORS: Mapping[str, ByArch] = {
    "XGBoost": {"x86": 16, "arm": 15},
    "LightGBM": {"x86": 15, "arm": 15},
    "CatBoost": {"x86": 17, "arm": 12},
    "RFR": {"x86": 19, "arm": 16},
    "DNN": {"x86": 25, "arm": 23},
    "SVR": {"x86": 26, "arm": 22},
}
"""Mean error of the models in percent, by family."""

GENERATIONS: Mapping[str, tuple[int, int]] = {"x86": (34, 77), "arm": (22, 54)}
"""Fewest and most generations until the search converged: four tree models, both workloads."""

XGBOOST_GENERATIONS: ByWorkload = {"x86": {"slt": 35, "dlt": 60}, "arm": {"slt": 23, "dlt": 44}}
LIGHTGBM_MINUTES: ByWorkload = {"x86": {"slt": 4, "dlt": 4}, "arm": {"slt": 2, "dlt": 12}}
"""Time until the search of LightGBM converged."""

MEAN_SPEED_UP: ByArch = {"x86": 3.8, "arm": 3.3}
BEST_SPEED_UP: ByArch = {"x86": 22, "arm": 12}
"""P99 of the default / P99 of the models' configurations: mean and best."""

TUNED_P99_LOWER: Mapping[str, tuple[str, int, int]] = {
    "x86": ("dlt", 515, 287),
    "arm": ("slt", 220, 60),
}
"""Workloads whose tuned P99 is lower than on the other architecture: by ms, and by percent."""

ENERGY: Mapping[str, str] = {"x86": "-", "arm": "about 40 % less, no measurement shown"}
