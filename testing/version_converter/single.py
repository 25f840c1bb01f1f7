"""One operator alone in a model: lowered to older opsets, and run there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import Graph
from serde.legalize.convert import lower_to, raise_to_ir
from testing.node_cases import Case, results, verdict

WRITTEN = 26  # the newest opset ONNX Runtime takes
UNKNOWN, BY_NAME, STATIC = "all sizes by name", "data sizes by name", "static"


@dataclass(frozen=True)
class Single:
    """An operator with operands and attributes; ``held`` are the operands that are constants."""

    op: str
    operands: Sequence[Any]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    held: Sequence[int] = ()
    outputs: int = 1
    opset: int = WRITTEN
    tolerance: float = 1e-5

    @property
    def id(self) -> str:
        """What pytest calls it."""
        shapes = ",".join("-" if a is None else str(np.shape(a)) for a in self.operands)
        attrs = ",".join(f"{n}={v}" for n, v in self.attrs.items())
        return f"{self.op}{shapes}{attrs}{list(self.held) or ''}"

    @cached_property
    def arrays(self) -> list[Any]:
        """The operands as arrays, in the types they have."""
        return [None if a is None else np.asarray(a) for a in self.operands]

    @property
    def feeds(self) -> list[Any]:
        """The operands that are inputs."""
        return [a for i, a in enumerate(self.arrays) if a is not None and i not in self.held]

    def model(self, form: str) -> onnx.ModelProto:
        """The model, its inputs of sizes known or named."""
        names = ["" if a is None else f"x{i}" for i, a in enumerate(self.arrays)]
        inputs, held = [], []
        for i, (name, a) in enumerate(zip(names, self.arrays, strict=True)):
            if a is None:
                continue
            if i in self.held:
                held.append(numpy_helper.from_array(a, name))
                continue
            named = form == UNKNOWN or (form == BY_NAME and i == 0)
            shape = [f"d{i}_{j}" for j in range(a.ndim)] if named else a.shape
            kind = helper.np_dtype_to_tensor_dtype(a.dtype)
            inputs.append(helper.make_tensor_value_info(name, kind, shape))
        outputs = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, outputs, **self.attrs)
        blank = [helper.make_empty_tensor_value_info(n) for n in outputs]
        graph = helper.make_graph([node], "one", inputs, blank, held)
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10
        )

    def case(self, form: str) -> Case:
        """The model with what a runtime computes for it, ONNX Runtime before onnx.reference."""
        model = self.model(form)
        runs = (r for _, r in results(model, self.feeds))
        expected = next((r for r in runs if not isinstance(r, Exception)), None)
        assert expected is not None, f"nothing runs {self.id}"
        for info, array in zip(model.graph.output, expected, strict=True):
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            shape = [f"o{j}" for j in range(array.ndim)] if form != STATIC else array.shape
            info.type.CopyFrom(helper.make_tensor_type_proto(kind, shape))
        return Case(self.op, model, [(self.feeds, expected)], self.tolerance, self.tolerance)

    def at(self, opset: int, form: str) -> Graph:
        """The operator written at ``opset``."""
        return lower_to(raise_to_ir(decode(self.case(form).model)), opset)

    def check(self, targets: Sequence[int], forms: Sequence[str] = (UNKNOWN, STATIC)) -> None:
        """Its numbers hold at every opset, whatever is known of the sizes."""
        for form in forms:
            case = self.case(form)
            ir = raise_to_ir(decode(case.model))
            for opset in targets:
                reason = verdict(case, to_proto(from_ir(ir, opset)))
                assert reason == "right", f"{form}, at {opset}: {reason}"
