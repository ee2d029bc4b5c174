"""Families of models that predict the log target from values of a configuration.

Every family has the same interface: a space of hyper-parameters made for 20 to 1,000 rows, and an
unfitted pipeline. The libraries are imported where they are used, run on one thread (processes
are the parallelism here), print nothing and write no files.
"""

from collections.abc import Mapping

from intop.learn.families.blend import BLEND
from intop.learn.families.boosted import CATBOOST, LIGHTGBM, XGBOOST
from intop.learn.families.family import Family
from intop.learn.families.forest import RFR
from intop.learn.families.network import DNN
from intop.learn.families.support_vector import SVR_FAMILY

INTOP_FAMILIES = (DNN, SVR_FAMILY, RFR, CATBOOST, LIGHTGBM, XGBOOST)
"""Those of the method, in the order of its error table."""
OUR_FAMILIES = (BLEND,)
"""Better than the six on small tables: benchmarks/results/models.md."""

FAMILIES: Mapping[str, Family] = {f.name: f for f in (*INTOP_FAMILIES, *OUR_FAMILIES)}
"""All families by name."""
