"""One operator of ONNX Runtime's, run by it as it is and as what serde makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from serde import api

DOMAIN = "com.microsoft"
OPSETS = (17, 21)
LEVELS = {
    "optimized": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "plain": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
}


@dataclass(frozen=True)
class Case:
    """``fixed`` are operands that are constants; ``sized`` those whose sizes are never named."""

    op: str
    operands: Sequence[np.ndarray | None]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    outputs: str = "y"  # a letter each; a blank is an output left out
    fixed: tuple[int, ...] = ()
    sized: tuple[int, ...] = ()
    domain: str = DOMAIN
    opset: int = 17
    tolerance: float = 2e-6
    most_off: int = 0  # by how much integers may differ without ONNX Runtime's fusions

    def __str__(self) -> str:
        shapes = ",".join("-" if v is None else "x".join(map(str, v.shape)) for v in self.operands)
        attrs = ",".join(f"{k}={v}" for k, v in self.attrs.items())
        kind = next(v.dtype for v in self.operands if v is not None)
        return f"{self.op}-{kind}-{shapes}-{attrs}"

    def model(self, named: bool = False) -> onnx.ModelProto:
        names = ["" if v is None else f"x{i}" for i, v in enumerate(self.operands)]
        arrays = [(i, n, v) for (i, v), n in zip(enumerate(self.operands), names) if v is not None]  # noqa: B905
        inputs = [
            helper.make_tensor_value_info(
                n, helper.np_dtype_to_tensor_dtype(v.dtype),
                [f"d{i}_{k}" for k in range(v.ndim)] if named and i not in self.sized else v.shape,
            )
            for i, n, v in arrays if i not in self.fixed
        ]  # fmt: skip
        weights = [numpy_helper.from_array(v, n) for i, n, v in arrays if i in self.fixed]
        outputs = [n.strip() for n in self.outputs]
        node = helper.make_node(
            self.op, names, outputs, name="layer", domain=self.domain, **self.attrs
        )
        ends = [onnx.ValueInfoProto(name=n) for n in outputs if n]
        graph = helper.make_graph([node], "g", inputs, ends, weights)
        domains = {"": self.opset, self.domain: 1 if self.domain else self.opset}
        imports = [helper.make_opsetid(*d) for d in domains.items()]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)

    @property
    def feeds(self) -> dict[str, np.ndarray]:
        return {
            f"x{i}": v for i, v in enumerate(self.operands)
            if v is not None and i not in self.fixed
        }  # fmt: skip


def run(model: Any, feeds: Mapping[str, np.ndarray], level: str = "optimized") -> list[Any]:
    """What ONNX Runtime computes for a model, a ModelProto or a path."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    options.log_severity_level = 4
    source = model if isinstance(model, str) else model.SerializeToString()
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(source, options, providers=providers).run(None, feeds)


def convert(model: onnx.ModelProto, folder: Any, opset: int, **options: Any) -> onnx.ModelProto:
    """The model as serde writes it at an opset."""
    source, target = str(folder / "source.onnx"), str(folder / "target.onnx")
    onnx.save(model, source)
    api.convert(source, target, opset=opset, **options)
    return onnx.load(target)


def check(case: Case, folder: Any) -> None:
    """Compare what ONNX Runtime makes of the operator and of the operators serde reads it as."""
    expected = run(case.model(), case.feeds)
    for named in (False, True):
        for opset in OPSETS:
            model = convert(case.model(named), folder, opset)
            assert not any(n.domain for n in model.graph.node)
            for level in LEVELS:
                off = case.most_off if level == "plain" else 0
                compare(run(model, case.feeds, level), expected, case.tolerance, off)


def compare(actual: Sequence[Any], expected: Sequence[Any], tolerance: float, off: int = 0) -> None:
    """Types and shapes are the same; integers but for ``off``, floats but for the tolerance."""
    assert [(a.dtype, a.shape) for a in actual] == [(a.dtype, a.shape) for a in expected]
    for a, b in zip(actual, expected, strict=True):
        if b.dtype.kind in "iub":
            wide = np.int64 if b.dtype.kind in "iu" else np.int8
            assert np.abs(a.astype(wide) - b.astype(wide)).max(initial=0) <= off
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(b)
        np.testing.assert_array_equal(a[~finite], b[~finite])
        most = np.abs(b[finite]).max(initial=1e-30)
        assert np.abs(a[finite] - b[finite]).max(initial=0) <= tolerance * most


def refusal(case: Case, folder: Any, named: bool = False) -> str:
    """The message with which serde refuses a case."""
    from serde.errors import Unconvertible

    try:
        convert(case.model(named), folder, OPSETS[0])
    except Unconvertible as error:
        return str(error)
    raise AssertionError(f"{case} was converted")
