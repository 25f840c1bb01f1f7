"""Exports the cases with live PyTorch, reads them, and compares what ONNX Runtime computes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from serde.errors import SerdeError

WORKER = Path(__file__).with_name("worker.py")
VARIABLE = "SERDE_TORCH_CPU"


def export_cases(cases: Sequence[Any], folder: Path, *options: str) -> list[str]:
    """Export the cases into ``folder``; their names there, numbered."""
    names = [f"{k:03}-{case[0].replace('.', '-')}" for k, case in enumerate(cases)]
    listed = folder / "cases.json"
    listed.write_text(json.dumps([[n, *c[1:]] for n, c in zip(names, cases, strict=True)]))
    python = Path(os.environ[VARIABLE], "v/bin/python")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [python, WORKER, listed, folder, *options]
    subprocess.run(command, check=True, env=environment, cwd="/")
    return names


def outcome(folder: Path, name: str, tolerance: float = 1e-4) -> str:
    """``right``, or why it is not: what was refused, or where the numbers differ."""
    import serde

    if (folder / f"{name}.error").exists():
        return "export " + (folder / f"{name}.error").read_text()[:100]
    target = folder / f"{name}.onnx"
    try:
        serde.convert(str(folder / f"{name}.pt2"), str(target), from_format="pt2")
    except SerdeError as error:
        return f"refused {error}"
    reason = check(folder / f"{name}.npz", target, tolerance)
    return f"wrong: {reason}" if reason else "right"


def check(arrays: Path, model: Path, tolerance: float = 1e-4) -> str:
    """Where a model differs from what was recorded, changed buffers included; or nothing."""
    with np.load(arrays) as recorded:
        expected = dict(recorded)
    inputs = [expected[f"in{k}"] for k in range(sum(n.startswith("in") for n in expected))]
    by_name = run_by_name(model, inputs)
    results = list(by_name.values())
    values = [expected[f"out{k}"] for k in range(sum(n.startswith("out") for n in expected))]
    if len(results) < len(values):
        return f"{len(results)} outputs, not {len(values)}"
    for k, (result, value) in enumerate(zip(results, values, strict=False)):
        if reason := compare(result, value, tolerance):
            return f"output {k} {reason}"
    buffers = {n.removeprefix("buffer."): v for n, v in expected.items() if n.startswith("buffer.")}
    if lost := buffers.keys() - by_name.keys():
        return f"{len(lost)} changed buffers are lost"
    for name, value in buffers.items():
        if reason := compare(by_name[name], value, tolerance):
            return f"buffer {name} {reason}"
    return ""


def run_onnx(path: Path, inputs: Sequence[Any]) -> list[Any]:
    """What ONNX Runtime computes."""
    return list(run_by_name(path, inputs).values())


def run_by_name(path: Path, inputs: Sequence[Any]) -> dict[str, Any]:
    """What ONNX Runtime computes, by the names of the outputs, in their order."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    results = session.run(None, dict(zip(names, inputs[: len(names)], strict=True)))
    return dict(zip([o.name for o in session.get_outputs()], results, strict=True))


def compare(result: Any, expected: Any, tolerance: float) -> str:
    """Why two arrays differ, or nothing."""
    if result.shape != expected.shape or result.dtype != expected.dtype:
        return f"{result.dtype}{result.shape}, not {expected.dtype}{expected.shape}"
    if expected.dtype.kind != "f":
        return "" if (result == expected).all() else "differs"
    with np.errstate(invalid="ignore"):
        scale = float(np.nanmax(np.abs(expected[np.isfinite(expected)]), initial=1.0))
        same = np.isclose(result, expected, rtol=0, atol=tolerance * scale, equal_nan=True)
    return "" if same.all() else f"differs by {np.nanmax(np.abs(result - expected)):.3g}"
