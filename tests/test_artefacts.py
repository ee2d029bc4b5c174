"""Saved models: the same when they come back, and nothing but models when they don't."""

import hashlib
import io
import json
import os
import pickle
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import results as findings
from builders.trials import model_error
from intop import artefacts
from intop.domain.encoding import Variable
from intop.domain.training import FittedFamily, ModelError
from intop.errors import ArtefactError, UsageError
from intop.learn.families import FAMILIES
from intop.learn.parallel import one_thread
from intop.learn.samples import Samples
from intop.learn.surrogate import fit, predicted

VARIABLES = (
    Variable(name="size", key="size", low=16, high=65536, scale="log"),
    Variable(name="share", key="share", low=0, high=10),
    Variable(name="kind", key="kind", choices=("cubic", "reno", "bbr")),
    Variable(name="switch", key="switch", choices=("0", "1")),
)
Saved = tuple[FittedFamily, ModelError, Any]


def rows(count: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 3, count), rng.integers(0, 2, count)]
    return np.column_stack(
        [np.exp2(rng.uniform(4, 16, count)), rng.uniform(0, 10, count), *columns]
    )


def saved(name: str) -> Saved:
    """A small fitted model of a family, with hyper-parameters and an error."""
    values = rows(24, 1)
    p99 = 5 + np.log2(values[:, 0]) + 3 * values[:, 3]
    measured = Samples(variables=VARIABLES, values=values, measured=tuple((v,) for v in p99))
    family = FAMILIES[name]
    hyperparameters = dict(family.defaults)
    if "trees" in hyperparameters:
        hyperparameters["trees"] = 5
    with one_thread():
        model = fit(family.build(VARIABLES, hyperparameters, 1), measured)
    fitted = FittedFamily(family=name, hyperparameters=hyperparameters, inner_score=0.5)
    return fitted, model_error(name, float("inf"), r2=0.1 + 0.2), model


DEFAULTS = {"size": "64", "share": "1", "kind": "cubic", "switch": "0"}
ORIGIN = replace(findings.ORIGIN, variables=VARIABLES, defaults=DEFAULTS)


@pytest.fixture(scope="module", name="svr")
def _svr() -> Saved:
    return saved("SVR")


@pytest.fixture(name="path")
def _path(tmp_path: Path, svr: Saved) -> Path:
    """An artefact with one model."""
    path = tmp_path / "x86-slt.zip"
    artefacts.save(path, ORIGIN, [svr])
    return path


def files_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def forged(
    path: Path, change: Callable[[dict[str, Any]], None], model: bytes | None = None
) -> None:
    """Change an artefact's manifest, its model too, and make all sums right again."""
    files = files_of(path)
    manifest = json.loads(files["manifest.json"])
    if model is not None:
        files["SVR.skops"] = model
        manifest["models"][0]["sha256"] = hashlib.sha256(model).hexdigest()
    change(manifest)
    files["manifest.json"] = json.dumps(manifest).encode()
    path.write_bytes(artefacts.packed(files))


def as_it_is(_manifest: dict[str, Any]) -> None:
    pass


def refusal(path: Path) -> str:
    """What reading an artefact and loading its model is refused by."""
    with pytest.raises(ArtefactError) as refused:
        artefacts.read(path).model("SVR")
    message = str(refused.value)
    assert message.startswith(f"{path}: ")
    assert "intop train --models DIR" in message
    return message


def models_or_refusal(path: Path) -> tuple[list[Any], str]:
    """The models of an artefact, or what one of them was refused by."""
    try:
        artefact = artefacts.read(path)
        return [artefact.model(m.family) for m in artefact.manifest.models], ""
    except ArtefactError as error:
        return [], str(error)


# Round trips --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_predicts_the_same_to_the_last_bit(name: str, tmp_path: Path) -> None:
    """A family that fails here has types that artefacts.ALLOWED doesn't know yet."""
    fitted, error, model = saved(name)
    path = tmp_path / "one.zip"
    manifest = artefacts.save(path, ORIGIN, [(fitted, error, model)])
    artefact = artefacts.read(path)
    assert manifest == artefact.manifest
    (message,) = artefact.manifest.models
    assert (name, fitted.hyperparameters, error) == (
        message.family,
        message.hyperparameters,
        message.error,
    )
    asked = rows(100, 2) * [2, 1.5, 1, 1]
    assert np.array_equal(predicted(model, asked), predicted(artefact.model(name), asked))


def test_a_manifest_says_all_that_was_said(path: Path, svr: Saved) -> None:
    manifest = artefacts.read(path).manifest
    assert manifest.origin == ORIGIN
    assert {"intop", "python", "sklearn", "numpy", "skops"} <= set(manifest.versions)
    assert set(manifest.models[0].libraries) == {"intop", "sklearn"}
    content = files_of(path)["SVR.skops"]
    assert hashlib.sha256(content).hexdigest() == manifest.models[0].sha256


def test_an_artefact_is_a_zip_file(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["manifest.json", "SVR.skops"]


def test_an_artefact_replaces_the_one_before(path: Path, svr: Saved) -> None:
    path.write_bytes(b"something else")
    artefacts.save(path, ORIGIN, [svr])
    assert artefacts.read(path).manifest.origin == ORIGIN
    assert [path.name] == [p.name for p in path.parent.iterdir()]


# What is not saved --------------------------------------------------------------------------------


class Foreign:
    """A regressor of which no loader was told."""

    def predict(self, values: Any) -> Any:
        return np.zeros(len(values))


def test_a_model_that_could_not_be_loaded_is_not_saved(path: Path, svr: Saved) -> None:
    before = path.read_bytes()
    with pytest.raises(ArtefactError, match=r"model SVR can't be saved: .*Foreign as ObjectNode"):
        artefacts.save(path, ORIGIN, [(svr[0], svr[1], Foreign())])
    assert before == path.read_bytes()


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace"])
def test_a_write_that_fails_leaves_the_old_artefact_whole(
    path: Path, svr: Saved, monkeypatch: pytest.MonkeyPatch, error: BaseException, step: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    before = path.read_bytes()
    monkeypatch.setattr(step, fail)
    with pytest.raises((UsageError, KeyboardInterrupt)) as raised:
        artefacts.save(path, ORIGIN, [svr])
    if isinstance(error, OSError):
        assert "No space left on device. Name another folder: --models DIR" in str(raised.value)
    assert before == path.read_bytes()
    assert [path.name] == [p.name for p in path.parent.iterdir()]


def test_a_folder_is_made_and_tried_before_there_is_anything_to_save(tmp_path: Path) -> None:
    artefacts.prepare(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "folder"):
        with pytest.raises(UsageError, match=r"file.*Name another folder: --models DIR"):
            artefacts.prepare(folder)


# What is no artefact ------------------------------------------------------------------------------


def test_what_is_missing_is_named(tmp_path: Path, path: Path) -> None:
    with pytest.raises(UsageError, match=r"arm-slt\.zip: no such file. .*intop train --models"):
        artefacts.read(tmp_path / "arm-slt.zip")
    with pytest.raises(UsageError, match=f"{tmp_path}: no file. "):
        artefacts.read(tmp_path)
    with pytest.raises(UsageError, match=r"nowhere: No such file or directory"):
        artefacts.paths(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"x86-slt\.zip: Not a directory"):
        artefacts.paths(path)
    path.unlink()
    with pytest.raises(UsageError, match=f"{tmp_path}: there are no models in it"):
        artefacts.paths(tmp_path)


def test_what_may_not_be_read_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(UsageError, match=r"x86-slt\.zip: Permission denied"):
        artefacts.read(path)


@pytest.mark.parametrize("content", [b"", b"x", b"\0" * 1000, pickle.dumps([1])])
def test_another_file_is_no_artefact(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert "this is no artefact of intop, or its end is missing" in refusal(path)


def test_a_file_without_end_is_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artefacts, "LARGEST", path.stat().st_size - 1)
    with pytest.raises(ArtefactError, match="are no artefact of intop"):
        artefacts.read(path)


@pytest.fixture(scope="module", name="whole")
def _whole(svr: Saved, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "x86-slt.zip"
    artefacts.save(path, ORIGIN, [svr])
    return path


@given(data=st.data())
def test_a_damaged_file_is_never_a_model(whole: Path, data: st.DataObject) -> None:
    good = whole.read_bytes()
    place = data.draw(st.integers(0, len(good) - 1))
    other = data.draw(st.integers(1, 255))
    before, after = good[:place], good[place + 1 :]
    changed, more = bytes([good[place] ^ other]), bytes([other])
    damages = [
        before + changed + after,
        before,
        after,
        before + more + good[place:],
        good + more * 3,
    ]
    damaged = data.draw(st.sampled_from(damages))
    path = whole.with_name("damaged.zip")
    path.write_bytes(damaged)
    assert "damaged" in refusal(path) or "no artefact" in refusal(path)


@given(data=st.data())
def test_damage_under_right_sums_is_no_traceback_and_no_other_model(
    whole: Path, svr: Saved, data: st.DataObject
) -> None:
    """As by somebody who makes files to see what happens."""
    path = whole.with_name("forged.zip")
    path.write_bytes(whole.read_bytes())
    content = bytearray(files_of(whole)["SVR.skops"])
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    forged(path, as_it_is, bytes(content))
    models, message = models_or_refusal(path)
    asked = rows(50, 3)
    assert all(np.array_equal(predicted(svr[2], asked), predicted(m, asked)) for m in models)
    assert models or str(path) in message


JUNK = st.one_of(
    st.none(), st.integers(), st.floats(), st.text(max_size=5), st.just([]), st.just({})
)


@given(data=st.data())
def test_a_manifest_of_anything_is_no_traceback(whole: Path, data: st.DataObject) -> None:
    path = whole.with_name("forged.zip")
    path.write_bytes(whole.read_bytes())

    def change(manifest: dict[str, Any]) -> None:
        part: Any = manifest
        while True:
            key = data.draw(
                st.sampled_from(sorted(part) if isinstance(part, dict) else range(len(part)))
            )
            if not isinstance(part[key], dict | list) or not part[key] or data.draw(st.booleans()):
                part[key] = data.draw(JUNK)
                return
            part = part[key]

    forged(path, change)
    _, message = models_or_refusal(path)
    assert not message or str(path) in message


# Files made with intent ---------------------------------------------------------------------------


def schema_of(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(files_of(path)["SVR.skops"])) as archive:
        result: dict[str, Any] = json.loads(archive.read("schema.json"))
        return result


def with_schema(path: Path, schema: Any) -> bytes:
    """The model's file with another schema."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(files_of(path)["SVR.skops"])) as old,
        zipfile.ZipFile(buffer, "w") as new,
    ):
        for name in old.namelist():
            new.writestr(name, json.dumps(schema) if name == "schema.json" else old.read(name))
    return buffer.getvalue()


def node(kind: str, name: str, **content: Any) -> dict[str, Any]:
    module, _, own = name.rpartition(".")
    return {"__class__": own, "__module__": module, "__loader__": kind, **content}


def listed(kind: str, *items: Any) -> dict[str, Any]:
    return node(f"{kind.title()}Node", f"builtins.{kind}", content=list(items))


def text(value: str) -> dict[str, Any]:
    return node("JsonNode", "builtins.str", content=json.dumps(value), is_json=True)


def evil(target: Path) -> dict[str, dict[str, Any]]:
    """Parts of a schema, by what each tries; two of them would make the file `target`."""
    call = listed("tuple", text(str(target)), text("w"))
    shell = node("FunctionNode", "posix.system")
    return {
        "posix.system as FunctionNode": shell,
        "builtins.eval as TypeNode": node("TypeNode", "builtins.eval"),
        "builtins.eval as FunctionNode": node("FunctionNode", "builtins.eval"),
        "subprocess.Popen as ObjectNode": node("ObjectNode", "subprocess.Popen"),
        "_io.FileIO as ConstructorFromReduceNode": node(
            "ConstructorFromReduceNode", "_io.FileIO", content=call
        ),
        "evil_module.Thing as ObjectNode": node("ObjectNode", "evil_module.Thing"),
        "functools.partial as PartialNode": node(
            "PartialNode",
            "functools.partial",
            content={
                "func": shell,
                "args": listed("tuple", text(f"touch {target}")),
                "kwds": node("DictNode", "builtins.dict", content={}, key_types=listed("list")),
                "namespace": text(""),
            },
        ),
        "operator.methodcaller as OperatorFuncNode": node(
            "OperatorFuncNode", "operator.methodcaller", attrs=call
        ),
        "operator.call as OperatorFuncNode": node("OperatorFuncNode", "operator.call", attrs=call),
        "builtins.str as MethodNode": node(
            "MethodNode", "builtins.str", content={"func": "format", "obj": text("")}
        ),
        # skops itself trusts what follows.
        "numpy.exp as FunctionNode": node("FunctionNode", "numpy.exp"),
        "sklearn.preprocessing._function_transformer.FunctionTransformer as ObjectNode": node(
            "ObjectNode", "sklearn.preprocessing._function_transformer.FunctionTransformer"
        ),
        # Types that are allowed, where they would be called with what the file likes.
        "xgboost.core.Booster as ListNode": node("ListNode", "xgboost.core.Booster", content=[]),
        "xgboost.core.Booster as ConstructorFromReduceNode": node(
            "ConstructorFromReduceNode", "xgboost.core.Booster", content=call
        ),
        "None.None as CachedNode": {"__loader__": "CachedNode", "__id__": 1},
        "builtins.str as ['JsonNode']": {**text(""), "__loader__": ["JsonNode"]},
    }


@pytest.mark.parametrize("name", evil(Path("x")))
def test_a_type_that_is_not_allowed_is_refused_by_name(
    name: str, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evil_module.py").write_text(f"open({str(tmp_path / 'made')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    schema = schema_of(path)
    steps = schema["content"]["content"]
    steps["verbose"] = evil(tmp_path / "made")[name]
    forged(path, as_it_is, with_schema(path, schema))
    assert f"{name} is not among the types that are allowed" in refusal(path)
    assert not (tmp_path / "made").exists()
    assert "evil_module" not in sys.modules


def test_without_the_list_such_a_file_would_act(path: Path, tmp_path: Path) -> None:
    """Else the test above would show nothing."""
    from skops.io import get_untrusted_types, loads

    schema = schema_of(path)
    trap = evil(tmp_path / "made")["_io.FileIO as ConstructorFromReduceNode"]
    schema["content"]["content"]["verbose"] = trap
    content = with_schema(path, schema)
    loads(content, trusted=get_untrusted_types(data=content))
    assert (tmp_path / "made").exists()


class Trap:
    """What a pickle makes when it is loaded."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.target),)


def test_a_pickle_is_never_loaded(path: Path, tmp_path: Path) -> None:
    trap = Trap(tmp_path / "made")
    forged(path, as_it_is, pickle.dumps(trap))
    assert "the model SVR can't be used: File is not a zip file" in refusal(path)

    array = io.BytesIO()
    np.save(array, np.array([trap], dtype=object), allow_pickle=True)
    buffer = io.BytesIO()
    artefacts.save(path, ORIGIN, [saved("SVR")])
    with (
        zipfile.ZipFile(io.BytesIO(files_of(path)["SVR.skops"])) as old,
        zipfile.ZipFile(buffer, "w") as new,
    ):
        for name in old.namelist():
            new.writestr(name, array.getvalue() if name.endswith(".npy") else old.read(name))
    forged(path, as_it_is, buffer.getvalue())
    assert "allow_pickle=False" in refusal(path)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("schema", [[], "", 1, None, {}, {"protocol": 2}, {"protocol": 2, "a": []}])
def test_a_schema_of_anything_is_no_traceback(path: Path, schema: Any) -> None:
    forged(path, as_it_is, with_schema(path, schema))
    refusal(path)


def test_earlier_protocols_are_refused_since_their_loaders_check_less(path: Path) -> None:
    schema = {**schema_of(path), "protocol": 0}
    forged(path, as_it_is, with_schema(path, schema))
    assert "protocol 0 of skops, and only 2 is allowed here" in refusal(path)


def test_what_would_unpack_to_gigabytes_is_not_unpacked(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", bytes(1 << 20))
    forged(path, as_it_is, buffer.getvalue())
    monkeypatch.setattr(artefacts, "LARGEST", 1 << 19)
    assert "1048576 bytes are more than the 524288 that a model may have" in refusal(path)


def test_a_model_that_says_something_else_is_refused(path: Path, svr: Saved) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["models"][0]["says"][2] += 0.01

    forged(path, change)
    assert "the model SVR can't be used: it predicts " in refusal(path)


# Other versions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 2, "1", None, [1]])
def test_another_format_is_refused(path: Path, number: Any) -> None:
    forged(path, lambda manifest: manifest.update(format=number))
    assert f"format {number!r}, and this intop (" in refusal(path)


def test_another_version_of_a_library_is_refused(path: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["models"][0]["libraries"]["sklearn"] = "0.24.2"

    forged(path, change)
    assert "it was saved with sklearn 0.24.2, and here is 1." in refusal(path)
    forged(path, lambda manifest: manifest["models"][0]["libraries"].pop("sklearn"))
    assert "it was saved with sklearn none, and here is 1." in refusal(path)


def test_another_patch_of_a_library_is_the_same(path: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        libraries = manifest["models"][0]["libraries"]
        libraries["sklearn"] = ".".join(libraries["sklearn"].split(".")[:2]) + ".99"

    forged(path, change)
    assert artefacts.read(path).model("SVR") is not None


def test_a_model_under_another_ones_name_is_refused(path: Path) -> None:
    files = files_of(path)
    files["SVR.skops"] += b"\0"
    path.write_bytes(artefacts.packed(files))
    assert "SVR.skops has the SHA-256 " in refusal(path)
