"""The JSON document."""

import json
from dataclasses import replace

import pytest

from findings import DEPLOYMENT
from intop import __version__
from intop.deploy.export.json import SCHEMA, deployment_json
from intop.errors import UsageError


def test_it_has_all_that_is_known() -> None:
    found = json.loads(deployment_json(DEPLOYMENT, written_at="now"))
    assert (f"intop {__version__}", "now", SCHEMA) == tuple(
        found[name] for name in ("written_by", "written_at", "schema")
    )
    assert ("lab", 1, "x86", "slt") == tuple(
        found[name] for name in ("study", "campaign", "arch", "workload")
    )
    assert found["values"] == DEPLOYMENT.values
    first, second = found["changes"]
    assert {"value": 2.9, "low": 2.0, "high": 4.2} == first["contribution"]["alone"]
    assert ("4096 131072 6291456", "medium") == (first["default"], first["risk"])
    assert first["document"] == "Documentation/networking/ip-sysctl.rst"
    assert second["contribution"] is None
    assert ("gain", 2.2) == (found["verdict"]["outcome"], found["verdict"]["ratio_low"])


def test_it_has_no_value_that_the_other_formats_refuse() -> None:
    changes = (replace(DEPLOYMENT.changes[0], value="1\x1b"),)
    with pytest.raises(UsageError, match="without a doubt"):
        deployment_json(replace(DEPLOYMENT, changes=changes), written_at="now")
