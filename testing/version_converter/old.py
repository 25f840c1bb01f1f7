"""Operators as opsets 1 to 13 spelled them, read, raised, written at opset 17 and run.

What they mean is told by NumPy; where ONNX Runtime still runs the old form, by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from serde.errors import SerdeError
from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import lower_to, raise_to_ir
from testing.node_cases import results

WRITTEN = 17
RNG = np.random.default_rng(7)
X = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)
C = RNG.standard_normal(3).astype(np.float32)
M = RNG.standard_normal((2, 3)).astype(np.float32)
POSITIVE = np.abs(X) + 1


@dataclass(frozen=True)
class Old:
    """One node of an old opset; ``expected`` None asks ONNX Runtime what the old form gives."""

    op: str
    opset: int
    inputs: Sequence[Any]
    attrs: dict[str, Any] = field(default_factory=dict)
    expected: Any = None
    outputs: int = 1
    held: Sequence[int] = ()  # inputs that are constants

    @property
    def id(self) -> str:
        """What pytest calls it."""
        return f"{self.op}-{self.opset}-{'-'.join(self.attrs)}"

    def model(self) -> tuple[onnx.ModelProto, list[np.ndarray]]:
        """The model of one node, and what to feed it."""
        values = [np.asarray(v) for v in self.inputs]
        names = [f"i{n}" for n in range(len(values))]
        outputs = [f"o{n}" for n in range(self.outputs)]
        fed = [n for n in range(len(values)) if n not in self.held]
        graph = helper.make_graph(
            [helper.make_node(self.op, names, outputs, **self.attrs)],
            "old",
            [helper.make_tensor_value_info(
                names[n], helper.np_dtype_to_tensor_dtype(values[n].dtype), values[n].shape
            ) for n in fed],
            [helper.make_value_info(name, onnx.TypeProto()) for name in outputs],
            [numpy_helper.from_array(values[n], names[n]) for n in self.held],
        )  # fmt: skip
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=4), [
            values[n] for n in fed
        ]

    def check(self) -> None:
        """What is written of it gives what the old form gives."""
        model, feeds = self.model()
        got = run(to_proto(lower_to(raise_to_ir(decode(model)), WRITTEN)), feeds)
        expected = self.expected if self.outputs > 1 else [self.expected]
        if self.expected is None:
            for output, value in zip(model.graph.output, got, strict=True):
                kind = helper.np_dtype_to_tensor_dtype(value.dtype)
                output.type.CopyFrom(helper.make_tensor_type_proto(kind, None))
            model.opset_import[0].version = max(7, self.opset)
            expected = run(model, feeds)
        for a, b in zip(expected, got, strict=True):
            assert np.shape(a) == b.shape
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5)

    def check_refused(self, reason: str) -> None:
        """It is refused when it is read."""
        with pytest.raises(SerdeError, match=reason):
            raise_to_ir(decode(self.model()[0]))


def run(model: onnx.ModelProto, feeds: list[np.ndarray]) -> list[Any]:
    """What ONNX Runtime gives."""
    got = dict(results(model, feeds))["ONNX Runtime"]
    if isinstance(got, Exception):
        raise got
    return list(got)
