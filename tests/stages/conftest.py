"""The fixture of tests/pipeline, until it is in tests."""

import importlib.util
from pathlib import Path

_path = Path(__file__).parent.parent / "pipeline" / "conftest.py"
_spec = importlib.util.spec_from_file_location("pipeline_conftest", _path)
assert _spec
assert _spec.loader
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
bench = _module.bench
