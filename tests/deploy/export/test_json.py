"""The JSON document."""

import json
from dataclasses import replace

import pytest

from builders.results import DEPLOYMENT
from intop import __version__
from intop.deploy.export.json import SCHEMA, deployment_json
from intop.errors import UsageError


def test_it_has_all_that_is_known() -> None:
    result = json.loads(deployment_json(DEPLOYMENT, written_at="now"))
    assert tuple(result[name] for name in ("written_by", "written_at", "schema")) == (
        f"intop {__version__}",
        "now",
        SCHEMA,
    )
    assert tuple(result[name] for name in ("study", "campaign", "arch", "workload")) == (
        "lab",
        1,
        "x86",
        "slt",
    )
    assert result["values"] == DEPLOYMENT.values
    first, second = result["changes"]
    assert first["contribution"]["alone"] == {"value": 2.9, "low": 2.0, "high": 4.2}
    assert (first["default"], first["risk"]) == ("4096 131072 6291456", "medium")
    assert first["document"] == "Documentation/networking/ip-sysctl.rst"
    assert second["contribution"] is None
    assert (result["verdict"]["outcome"], result["verdict"]["ratio_low"]) == ("gain", 2.2)


def test_it_has_no_value_that_the_other_formats_refuse() -> None:
    changes = (replace(DEPLOYMENT.changes[0], value="1\x1b"),)
    with pytest.raises(UsageError, match="without a doubt"):
        deployment_json(replace(DEPLOYMENT, changes=changes), written_at="now")
