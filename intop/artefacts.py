"""Artefacts on disk: fitted models that can be loaded without trusting whoever made them.

An artefact is a zip file: `manifest.json`, and one file in the format of skops for each model.
Unlike a pickle, that is a tree of data in which objects have types by name, and only those of
ALLOWED are ever made. The zip's comment ends in the SHA-256 of all that stands before it, so a
file that was damaged is never even parsed.

What that can't promise: a file made with intent has right sums, and its trees and networks are
read by the C code of their libraries, whose care is all there is then.
"""

import hashlib
import importlib
import io
import json
import platform
import sys
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from intop.atomic import beside, write_atomically
from intop.domain.artefact import FORMAT, Manifest, Origin, SavedModel, fingerprint, probes
from intop.domain.encoding import Variable
from intop.domain.training import FittedFamily, ModelError
from intop.errors import ArtefactError, IntopError, UsageError
from intop.version import __version__

SUFFIX = ".zip"
LARGEST = 512 << 20
"""Bytes of an artefact, and of what is unpacked from a model. Ours have some megabytes."""

_COMMENT = b"models of intop, sha256 "
_DIGITS = 64
_MANIFEST = "manifest.json"
_SCHEMA = "schema.json"

ALLOWED: Mapping[str, frozenset[str]] = {
    "JsonNode": frozenset({"builtins.str"}),
    "DictNode": frozenset({"builtins.dict", "collections.OrderedDict"}),
    "DefaultDictNode": frozenset({"collections.defaultdict"}),
    "ListNode": frozenset({"builtins.list"}),
    "TupleNode": frozenset({"builtins.tuple"}),
    "BytesNode": frozenset({"builtins.bytes"}),
    "BytearrayNode": frozenset({"builtins.bytearray"}),
    "TypeNode": frozenset(
        {"builtins.str", "builtins.int", "builtins.list", "collections.OrderedDict"}
    ),
    "NdArrayNode": frozenset(
        {"numpy.ndarray", "numpy.bool"}
        | {f"numpy.{name}" for name in ("float32", "float64", "int32", "int64", "uint32")}
    ),
    "RandomStateNode": frozenset({"numpy.random.mtrand.RandomState"}),
    "TreeNode": frozenset({"sklearn.tree._tree.Tree"}),
    "FunctionNode": frozenset({"intop.learn.estimators.relevance"}),
    "ObjectNode": frozenset(
        {
            "intop.domain.encoding.Variable",
            "intop.learn.estimators.Encoder",
            "intop.learn.estimators.EarlyStoppedNetworks",
            "intop.learn.estimators.PartOfRows",
            "intop.learn.estimators.Blend",
            "intop.learn.gaussian_process.GaussianProcess",
            "sklearn.pipeline.Pipeline",
            "sklearn.preprocessing._data.StandardScaler",
            "sklearn.feature_selection._univariate_selection.SelectPercentile",
            "sklearn.decomposition._pca.PCA",
            "sklearn.compose._target.TransformedTargetRegressor",
            "sklearn.neural_network._multilayer_perceptron.MLPRegressor",
            "sklearn.svm._classes.SVR",
            "sklearn.ensemble._forest.ExtraTreesRegressor",
            "sklearn.ensemble._forest.RandomForestRegressor",
            "sklearn.tree._classes.DecisionTreeRegressor",
            "sklearn.tree._classes.ExtraTreeRegressor",
            "catboost.core.CatBoostRegressor",
            "lightgbm.sklearn.LGBMRegressor",
            "lightgbm.basic.Booster",
            "xgboost.sklearn.XGBRegressor",
            "xgboost.core.Booster",
        }
    ),
}
"""The names of types that a model may be made of, by the kind of node of skops.

Nodes that call something by name (methods, operators, partial functions) are not among them. A
family whose models hold anything else can't be saved before its types are added here.
"""

UNSAVED = "All else of the training is stored: intop search does without saved models"
SAVING = "Models are saved by: intop train --models DIR"
ANEW = "Fit the models anew: intop train --models DIR"

_OUTLIVES_VERSIONS = {"numpy"}
"""Packages of which a model has only arrays, in a format that any version reads."""


@dataclass(frozen=True)
class Artefact:
    """An opened artefact."""

    path: Path
    manifest: Manifest
    contents: Mapping[str, bytes]
    """The content of each model's file by family."""

    def model(self, family: str) -> Any:
        """Return the fitted model of a family that the manifest has.

        Raises ArtefactError for a type that is not allowed, a library of another version, and a
        model that doesn't predict what it predicted when it was saved.
        """
        saved = next(m for m in self.manifest.models if m.family == family)
        content = self.contents[family]
        with _named(f"{self.path}: the model {family} can't be used", ANEW):
            _check_versions(saved.libraries, _libraries(_audited(content)))
            model = _loaded(content)
            here = _predictions(model, self.manifest.origin.variables)
            # Other processors' arithmetic comes to the same, but for the last digits.
            if not np.allclose(here, saved.says, rtol=1e-4, atol=1e-4):
                raise ValueError(
                    f"it predicts {_numbers(here)} where it predicted {_numbers(saved.says)} when "
                    f"it was saved"
                )
        return model


def paths(folder: Path) -> list[Path]:
    """Return a folder's artefacts, by name. Raises UsageError where there is no folder, or none."""
    with _usable(folder):
        artefacts = sorted(p for p in folder.iterdir() if p.name.endswith(SUFFIX))
    if not artefacts:
        raise UsageError(f"{folder}: there are no models in it. {SAVING}")
    return artefacts


def prepare(folder: Path) -> None:
    """Make a folder for artefacts where there is none. Raises UsageError where none can be.

    To be called before the work whose result is to be saved.
    """
    with _usable(folder):
        folder.mkdir(parents=True, exist_ok=True)
        attempt = beside(folder / "attempt")
        attempt.touch()
        attempt.unlink()


def save(
    path: Path, origin: Origin, models: Sequence[tuple[FittedFamily, ModelError, Any]]
) -> Manifest:
    """Write fitted models in place of what stood there: all of it, or nothing of it.

    Raises ArtefactError for a model that could not be loaded again, UsageError where nothing can
    be written.
    """
    contents: dict[str, bytes] = {}
    saved: list[SavedModel] = []
    for fitted, error, model in models:
        with _named(f"{path}: the model {fitted.family} can't be saved", UNSAVED):
            content = _dumped(model)
            libraries = _libraries(_audited(content))
            says = _predictions(model, origin.variables)
            if _predictions(_loaded(content), origin.variables) != says:
                raise ValueError("it reads back as another model")
        file = f"{fitted.family}.skops"
        contents[file] = content
        saved.append(
            SavedModel(
                family=fitted.family,
                hyperparameters=fitted.hyperparameters,
                error=error,
                file=file,
                sha256=hashlib.sha256(content).hexdigest(),
                libraries=libraries,
                says=says,
            )
        )
    manifest = Manifest(
        format=FORMAT,
        saved_at=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=_versions(),
        origin=origin,
        space=fingerprint(origin.variables),
        models=tuple(saved),
    )
    document = json.dumps(TypeAdapter(Manifest).dump_python(manifest), indent=2)
    with _usable(path):
        write_atomically(path, packed({_MANIFEST: document.encode(), **contents}))
    return manifest


def read(path: Path) -> Artefact:
    """Read the artefact in a file. No model of it is made yet.

    Raises UsageError where there is none that can be read, ArtefactError for one that is damaged
    or of another format.
    """
    with _usable(path):
        if not path.is_file():
            what = "no file" if path.exists() else "no such file"
            raise UsageError(f"{path}: {what}. {SAVING}")
        if path.stat().st_size > LARGEST:
            raise ArtefactError(f"{path}: more than {LARGEST >> 20} MiB are no artefact of intop")
        data = path.read_bytes()
    _check_sum(path, data)
    with _named(f"{path}: what it holds can't be used", ANEW):
        files = _unpacked(data)
        manifest = _manifest(files[_MANIFEST])
        for model in manifest.models:
            actual = hashlib.sha256(files[model.file]).hexdigest()
            if actual != model.sha256:
                raise ValueError(f"{model.file} has the SHA-256 {actual}, not {model.sha256}")
        contents = {model.family: files[model.file] for model in manifest.models}
    return Artefact(path, manifest, contents)


def packed(files: Mapping[str, bytes]) -> bytes:
    """Return an artefact's bytes: a zip file of these, with the sum of all before it at its end."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.comment = _COMMENT + bytes(_DIGITS)
    body = buffer.getvalue()[:-_DIGITS]
    return body + hashlib.sha256(body).hexdigest().encode()


def _check_sum(path: Path, data: bytes) -> None:
    body, written = data[:-_DIGITS], data[-_DIGITS:]
    if not body.endswith(_COMMENT):
        raise ArtefactError(
            f"{path}: this is no artefact of intop, or its end is missing. {SAVING}"
        )
    actual = hashlib.sha256(body).hexdigest().encode()
    if actual != written:
        raise ArtefactError(
            f"{path}: the file is damaged: its SHA-256 is {actual.decode()} and should be "
            f"{written.decode(errors='replace')}. Copy it once more, or save it anew: "
            f"intop train --models DIR"
        )


def _unpacked(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        _check_size(archive)
        return {name: archive.read(name) for name in archive.namelist()}


def _check_size(archive: zipfile.ZipFile) -> None:
    """Raise ValueError for kilobytes that hold gigabytes. More than declared is never unpacked."""
    if (size := sum(item.file_size for item in archive.infolist())) > LARGEST:
        raise ValueError(f"{size} bytes are more than the {LARGEST} that a model may have")


def _manifest(text: bytes) -> Manifest:
    number = json.loads(text)["format"]
    if number != FORMAT:
        raise ValueError(f"format {number!r}, and this intop ({__version__}) reads {FORMAT}")
    return TypeAdapter(Manifest).validate_json(text)


def _dumped(model: Any) -> bytes:
    from skops.io import dumps

    return bytes(dumps(model, compression=zipfile.ZIP_DEFLATED))


def _loaded(content: bytes) -> Any:
    """Return the object in a model's file. Raises ValueError for a type that is not allowed."""
    _audited(content)
    from skops.io import loads

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return loads(content, trusted=[name for names in ALLOWED.values() for name in names])


def _audited(content: bytes) -> set[str]:
    """Return the types in a model's file. Raises ValueError for one that is not allowed.

    That is looked at here and not left to skops, which trusts all of scikit-learn's types and
    numpy's functions, makes any type by any kind of node, and reads files by its loaders of
    earlier versions, which check less, when a file asks for them.
    """
    from skops.io._protocol import PROTOCOL

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        _check_size(archive)
        schema = json.loads(archive.read(_SCHEMA))
    if schema["protocol"] != PROTOCOL:
        raise ValueError(
            f"protocol {schema['protocol']!r} of skops, and only {PROTOCOL} is allowed here"
        )
    types: set[str] = set()
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if "__loader__" in part or "__class__" in part or "__module__" in part:
                name = f"{part.get('__module__')}.{part.get('__class__')}"
                kind = part.get("__loader__")
                if not isinstance(kind, str) or name not in ALLOWED.get(kind, ()):
                    raise ValueError(f"{name} as {kind} is not among the types that are allowed")
                types.add(name)
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return types


def _libraries(types: set[str]) -> dict[str, str]:
    """Return the versions of the libraries of these types, by the names of their imports."""
    names = {name.partition(".")[0] for name in types} - sys.stdlib_module_names
    return {name: _version(name) for name in sorted(names - _OUTLIVES_VERSIONS)}


def _check_versions(then: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Fitted objects are private to their library, and may mean something else in another."""
    for name, here in now.items():
        there = then.get(name, "none")
        if here.split(".")[:2] != there.split(".")[:2]:
            raise ValueError(
                f"it was saved with {name} {there}, and here is {here}, which may read it as "
                f"another model"
            )


def _version(library: str) -> str:
    return str(importlib.import_module(library).__version__)


def _versions() -> dict[str, str]:
    names = ("intop", "numpy", "scipy", "sklearn", "skops")
    return {"python": platform.python_version()} | {name: _version(name) for name in names}


def _predictions(model: Any, variables: Sequence[Variable]) -> tuple[float, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predictions = np.asarray(model.predict(probes(variables)), dtype=np.float64)
    return tuple(float(number) for number in predictions.reshape(-1))


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)


@contextmanager
def _usable(path: Path) -> Iterator[None]:
    """Raise UsageError with what the system has against a file or folder."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"{error.filename or path}: {error.strerror or error}. "
            f"Name another folder: --models DIR"
        ) from error


@contextmanager
def _named(what: str, then: str) -> Iterator[None]:
    """Name what can't be read. Whoever made it may have made it to stumble over."""
    try:
        yield
    except IntopError:
        raise
    except Exception as error:
        reason = " ".join(f"{error}".split())[:300] or type(error).__name__
        raise ArtefactError(f"{what}: {reason}. {then}") from error
