"""The database's own clock, by which leases run out: workers' clocks may differ."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class StoreClock(FunctionElement[float]):
    """Seconds since 1970, UTC."""

    type = sa.Float()
    inherit_cache = True


@compiles(StoreClock, "sqlite")
def _sqlite(_element: StoreClock, _compiler: Any, **_: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(StoreClock, "postgresql")
def _postgresql(_element: StoreClock, _compiler: Any, **_: Any) -> str:
    # now() stands still within a transaction.
    return "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
