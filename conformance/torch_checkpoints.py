"""Models of PyTorch through its exporters to ONNX and back: the keys of their checkpoints.

``$SERDE_PYTORCH`` names a Python with PyTorch, ``$SERDE_TORCH_ZOO`` a folder of packages that have
the models and the exporters (``torch_checkpoints_script.py``).
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import serde
from serde.errors import SerdeError
from serde.formats.torch.modules.unfold import EPSILON

from .matrix import Cell, last_line, reason
from .record import NOT_RUN, REFUSED, RIGHT, WRONG, Outcome

SCRIPT = Path(__file__).with_name("torch_checkpoints_script.py")
EXPORTERS = {"dynamo": "torch.export", "script": "TorchScript",
             "unfolded": "TorchScript, unfolded"}  # fmt: skip
SAME = 1e-4  # of the largest number of an output
Row = dict[str, Any]


class TorchCheckpoints(Cell):
    """Whether a written module loads the checkpoint of the model that was exported."""

    seconds = 600

    def cases(self) -> list[str]:
        able = os.environ.get("SERDE_TORCH_ZOO") and os.environ.get("SERDE_PYTORCH")
        return json.loads(run_script("list")) if able else []

    def run(self, case: str) -> Row:
        with tempfile.TemporaryDirectory() as place:
            run_script("export", case, place)
            return {way: measure(Path(place), way) for way in EXPORTERS}

    def outcomes(self, case: str, row: Row) -> dict[str, Outcome]:
        if "failed" in row:
            return {"": Outcome.of(WRONG, row["failed"])}
        return {way: judge(found) for way, found in row.items()}

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**before, **rows}  # the packages need not be here


def run_script(*arguments: str) -> str:
    """What the script prints in the Python that has PyTorch."""
    command = [os.environ["SERDE_PYTORCH"], SCRIPT, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(last_line(Exception(done.stderr)))
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""


def measure(folder: Path, way: str) -> Row:
    """What becomes of the file of an exporter."""
    path = folder / f"{way}.onnx"
    if not path.exists():
        return {"exported": (folder / f"{way}.txt").read_text()}
    try:
        serde.convert(path, folder / f"{way}.py")
    except SerdeError as problem:
        return {"refused": reason(problem)}
    tree = ast.parse((folder / f"{way}.py").read_text())
    methods = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "forward"]
    row = json.loads(run_script("check", str(folder), way))
    row["missing"], row["more"] = (
        {"keys": len(row[n]), "first": row[n][:2]} for n in ("missing", "more")
    )
    return {**row, "classes": sum(isinstance(n, ast.ClassDef) for n in ast.walk(tree)),
            "statements": sum(len(m.body) for m in methods),
            "layers": len(serde.load(path).nodes)}  # fmt: skip


def judge(found: Row) -> Outcome:
    """A module that computes something else is wrong; other keys refuse the checkpoint."""
    if "exported" in found:
        return Outcome.of(NOT_RUN, found["exported"])
    if "refused" in found:
        return Outcome.of(REFUSED, found["refused"])
    if max(found["error"], found.get("loaded", 0)) > SAME:
        return Outcome.of(WRONG, f"off by {max(found['error'], found.get('loaded', 0)):.1e}")
    if "loaded" not in found:
        return Outcome.of(REFUSED, f"keys: {_count(found)}")
    return Outcome(RIGHT)


def _count(found: Row) -> str:
    return f"{found['missing']['keys']} missing, {found['more']['keys']} more"


HEADER = """# Checkpoints of PyTorch

Made by `python -m conformance.pages`. Architectures with random weights, exported to ONNX by each
of PyTorch's exporters with a batch of any size, and written by serde as a module again. *Loaded*:
the keys of the module are the original's, `load_state_dict` takes the checkpoint strictly, and the
module computes with it what the model does, within {same:g} of the largest number. With the weights
of the file all modules do. Otherwise the keys that the module lacks or has more are counted: those
of arrays that the exporter replaced by what it computed of them, with the first of them.

TorchScript's exporter folds a batch norm into the layer before it, and does not write its epsilon:
where that is not {eps:g}, the module is off with the checkpoint's weights. *Unfolded* are files of
`torch.onnx.export(model, x, path, dynamo=False, training=torch.onnx.TrainingMode.PRESERVE,
do_constant_folding=False)`, which have all arrays as they are.
"""


def page(known: Mapping[str, Row]) -> Iterator[str]:
    """The lines of docs/results/torch-checkpoints.md."""
    yield HEADER.format(same=SAME, eps=EPSILON)
    yield f"| | {' | '.join(EXPORTERS.values())} |"
    yield f"|---|{'---|' * len(EXPORTERS)}"
    ways = {way: [row[way] for row in known.values() if way in row] for way in EXPORTERS}
    exported = {way: [f for f in found if "exported" not in f] for way, found in ways.items()}
    yield f"| exported | {' | '.join(str(len(found)) for found in exported.values())} |"
    loaded = (sum(judge(f).kind == RIGHT for f in found) for found in exported.values())
    yield f"| loaded | {' | '.join(map(str, loaded))} |"
    yield ""
    yield "Layers are nodes of the file, statements those of all `forward` methods together.\n"
    yield f"| model | {' | '.join(EXPORTERS.values())} | layers | classes | statements |"
    yield f"|---|{'---|' * (len(EXPORTERS) + 3)}"
    for name, row in known.items():
        cells = [_cell(row.get(way, {"exported": row.get("failed", "")})) for way in EXPORTERS]
        sizes = row.get("dynamo", {})
        numbers = [str(sizes.get(n, "")) for n in ("layers", "classes", "statements")]
        yield f"| {name} | {' | '.join([*cells, *numbers])} |"
    yield ""


def _cell(found: Row) -> str:
    if "exported" in found:
        return f"not exported: {found['exported']}"
    if "refused" in found:
        return f"refused: {found['refused'][:60]}"
    if "loaded" in found:
        return "loaded" if judge(found).kind == RIGHT else judge(found).reason
    first = [*found["missing"]["first"], *found["more"]["first"]][:1]
    return f"{_count(found)}: `{first[0]}`"
