"""Run a program node by node: ONNX Runtime, or onnx.reference where that has no kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import ml_dtypes  # noqa: F401  (registers bfloat16)
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from serde.spec import schema

from .domains import LARGEST
from .program import IR_VERSIONS, Array, Body, Step, code_of, info, is_fed, make_node, names_read
from .quirks import is_defined

NEWEST = 26  # the newest opset that ONNX Runtime takes
NO_REFERENCE = frozenset(  # whose onnx.reference is known to be no judge
    "Resize GridSample RoiAlign LSTM GRU RNN ConvTranspose Attention If Loop Scan OneHot Unique "
    "GlobalMaxPool LRN LpPool MaxPool ReduceSumSquare SplitToSequence".split()
)

Run = Callable[[Step, dict[str, Array], int], None]  # computes one step


class Rejected(Exception):
    """A node that is not defined, or that no runtime runs."""


@cache
def options() -> Any:
    """Sessions of one thread without optimizers."""
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return settings


def session_of(model: onnx.ModelProto) -> Any:
    """A session of ONNX Runtime."""
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options(), providers=["CPUExecutionProvider"]
    )


class Runner:
    """One node in a runtime, for operands of the same types.

    Raises:
        Rejected: where no runtime has it; ``few`` leaves out what only onnx.reference has.
    """

    def __init__(
        self, node: onnx.NodeProto, names: Iterable[str], values: Mapping[str, Array], opset: int,
        few: bool = False,
    ) -> None:  # fmt: skip
        self.names = sorted(names)
        operator = schema.find(node.op_type, opset)
        if operator is None:
            raise Rejected(f"opset {opset} has no {node.op_type}")
        version = min(opset, NEWEST) if operator.since <= NEWEST else opset
        model = self.model(node, values, version)
        self.session: Any = None
        error: Exception | None = None
        if version <= NEWEST:
            try:
                self.session = session_of(model)
            except Exception as problem:  # ONNX Runtime raises what it likes
                error = problem
        if self.session is None:
            lacks = error is None or "NOT_IMPLEMENTED" in str(error)
            if not lacks or few or node.op_type in NO_REFERENCE:
                raise Rejected(str(error))
            try:
                self.reference = ReferenceEvaluator(model)
            except Exception as problem:  # what it lacks is an error of several kinds
                raise Rejected(str(problem)) from None

    def model(self, node: onnx.NodeProto, values: Mapping[str, Array], version: int) -> Any:
        """The model of the node alone, with casts around types that runtimes do not take."""
        nodes, inputs = [], []
        for name in self.names:
            value = values[name]
            if is_fed(value):
                inputs.append(info(name, value))
                continue
            inputs.append(helper.make_tensor_value_info(f"{name}_f", TensorProto.FLOAT, None))
            nodes.append(helper.make_node("Cast", [f"{name}_f"], [name], to=code_of(value)))
        outputs = [onnx.ValueInfoProto(name=n) for n in node.output if n]
        graph = helper.make_graph([*nodes, node], "node", inputs, outputs)
        return helper.make_model(
            graph, ir_version=IR_VERSIONS.get(version, 8),
            opset_imports=[helper.make_opsetid("", version)],
        )  # fmt: skip

    def __call__(self, values: Mapping[str, Array]) -> list[Array]:
        feeds = {}
        for name in self.names:
            value = values[name]
            key = name if is_fed(value) else f"{name}_f"
            feeds[key] = value if is_fed(value) else value.astype(np.float32)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                if self.session is not None:
                    return [*map(view_bits, self.session.get_outputs(),
                                 self.session.run(None, feeds))]  # fmt: skip
                outputs = self.reference.run(None, feeds)
                return [y if isinstance(y, list) else plain_array(y) for y in outputs]
            except Exception as error:  # a runtime raises what it likes
                raise Rejected(f"{type(error).__name__}: {error}") from None


def view_bits(output: Any, value: Any) -> Any:
    """A result of ONNX Runtime, which returns the bits of floats of 8 bits."""
    kind = output.type.removeprefix("tensor(float8").removesuffix(")")
    if kind == output.type.removesuffix(")"):
        return value
    return value.view(f"float8_{kind}")


def plain_array(value: Any) -> Array:
    """A result of onnx.reference: an array, whose strings are objects."""
    array = np.asarray(value)
    return array.astype(object) if array.dtype.kind in "US" else array


def run_by_node(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    """What a model computes node by node, each in the runtime that has it."""
    opset = model.opset_import[0].version
    values = {**feeds}
    values |= {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    for node in model.graph.node:
        free = {n for n in (*node.input, *find_captured(node)) if n} & values.keys()
        results = Runner(node, free, values, opset)(values)
        values.update(zip((n for n in node.output if n), results, strict=True))
    return [values[o.name] for o in model.graph.output]


def find_captured(node: onnx.NodeProto) -> set[str]:
    """The names that the bodies of a node read."""
    names: set[str] = set()
    for attribute in node.attribute:
        for inner in attribute.g.node:
            names |= {*inner.input, *find_captured(inner)}
        names |= {o.name for o in attribute.g.output}
    return names


def run_step(step: Step, values: dict[str, Array], opset: int, few: bool = False) -> None:
    """Compute a step of ``values``, and add what it computes to them.

    Raises:
        Rejected: where the standard leaves the result open, or no runtime has the node.
    """
    operands = [values[n] if n else None for n in step.inputs]
    if not is_defined(step.op, operands, step.attrs):
        raise Rejected("undefined")
    if step.bodies:
        run_bodies(step, operands, values, opset)  # to see that every iteration is defined
    if step.session is None:
        node = make_node(step, values)
        step.session = Runner(node, names_read(step) & values.keys(), values, opset, few)
    results = step.session(values)
    for name, result in zip((n for n in step.outputs if n), results, strict=True):
        check_size(result)
        values[name] = result


def run_steps(steps: Iterable[Step], values: dict[str, Array], opset: int) -> None:
    """Compute all steps, in order."""
    for step in steps:
        run_step(step, values, opset)


def check_size(result: Array) -> None:
    """Reject results that are too large, or nothing."""
    for one in result if isinstance(result, list) else [result]:
        if one is None or one.size > LARGEST or one.ndim > 6:
            raise Rejected("too large")
    if isinstance(result, list) and not result:
        raise Rejected("an empty sequence")


def run_bodies(
    step: Step, operands: Sequence[Array], values: dict[str, Array], opset: int,
    run: Run | None = None,
) -> list[Array]:  # fmt: skip
    """What a node with bodies computes, step by step.

    ``run`` computes one step, ``run_step`` if None.

    Raises:
        Rejected: where an iteration is not defined, or stacks nothing.
    """
    compute = run or run_step

    def call(body: Body, args: Sequence[Array]) -> list[Array]:
        inner = {**values, **body.constants, **dict(zip(body.inputs, args, strict=True))}
        for inside in body.steps:
            compute(inside, inner, opset)
        return [inner[n] for n in body.outputs]

    if step.op == "If":
        results = {name: call(body, ()) for name, body in step.bodies.items()}
        return results["then_branch" if bool(operands[0]) else "else_branch"]
    if step.op == "Loop":
        return run_loop(operands, partial(call, step.attrs["body"]))
    return run_scan(step, operands, partial(call, step.attrs["body"]))


def run_loop(
    operands: Sequence[Array], call: Callable[[Sequence[Array]], list[Array]]
) -> list[Array]:
    """Iterate the body of a Loop."""
    count = int(operands[0]) if operands[0] is not None else 100
    going = bool(operands[1]) if operands[1] is not None else True
    carried, stacked = list(operands[2:]), []
    for turn in range(count):
        if not going:
            break
        outputs = call([np.array(turn, np.int64), np.array(going), *carried])
        going, carried = bool(outputs[0]), outputs[1 : 1 + len(carried)]
        stacked.append(outputs[1 + len(carried) :])
    if len({tuple(np.shape(y) for y in ys) for ys in stacked}) > 1:
        raise Rejected("slices of several shapes")
    return [*carried, *(np.stack(ys) for ys in zip(*stacked, strict=True))]


def run_scan(
    step: Step, operands: Sequence[Array], call: Callable[[Sequence[Array]], list[Array]]
) -> list[Array]:
    """Iterate the body of a Scan over one operand."""
    *states, x = operands
    axis = step.attrs.get("scan_input_axes", [0])[0]
    slices = [np.asarray(np.take(x, i, axis)) for i in range(x.shape[axis])]
    if step.attrs.get("scan_input_directions", [0])[0]:
        slices.reverse()
    stacked = []
    for one in slices:
        outputs = call([*states, one])
        states = outputs[: len(states)]
        stacked.append(outputs[-1])
    if len({np.shape(y) for y in stacked}) > 1:
        raise Rejected("slices of several shapes")
    if step.attrs.get("scan_output_directions", [0])[0]:
        stacked.reverse()
    return [*states, np.stack(stacked)]
