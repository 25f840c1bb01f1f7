"""If, Loop and Scan in their older forms, and Optional values."""

from __future__ import annotations

from serde.decompositions.loops import fill_zeros
from serde.errors import require
from serde.ir.geometry import may_be_same
from serde.ir.graph import DType, Graph, Node, Shape, Value, show_shape
from serde.spec.schema import ELEMENT_CODES

from . import decomposition, downgrades, upgrades
from .common import END


def bind_body_input(g, source: Value, value: Value) -> None:
    """Let ``value``, the input of a body, be what a node now computes."""
    g.nodes.append(Node("Identity", (source,), (value,), name=value.name))


@downgrades[11]("If")
def equalize_branch_shapes(g, condition, *, then_branch: Graph, else_branch: Graph, outputs=1):
    """Before opset 11 both branches had to give the same shapes."""
    for a, b in zip(then_branch.outputs, else_branch.outputs, strict=True):
        require(may_be_one(a.shape, b.shape), f"branches that give {show_shape(a.shape)} and "
                f"{show_shape(b.shape)}; opset 11 is the lowest that takes them")  # fmt: skip
    return g.If(condition, then_branch=then_branch, else_branch=else_branch, outputs=outputs)


def may_be_one(a: Shape | None, b: Shape | None) -> bool:
    """Whether nothing that is known keeps two shapes from being the same."""
    if a is None or b is None:
        return True
    return len(a) == len(b) and all(map(may_be_same, a, b))


@downgrades[11]("Loop")
def loop_with_a_state(g, count, go, *states: Value, body: Graph, outputs=1):
    """Before opset 11 a loop had to carry something."""
    if states:
        return g.Loop(count, go, *states, body=body, outputs=outputs)
    inner = g.child(body.name)
    inner.nodes.extend(body.nodes)
    state = inner.input("carried", DType.BOOL, ())
    kept = inner.Identity(state)
    inner.inputs[:0] = body.inputs
    graph = inner.build([body.outputs[0], kept, *body.outputs[1:]])
    values = g.Loop(count, go, g.const(True, DType.BOOL), body=graph, outputs=outputs + 1)
    return values[1:]


@downgrades[9]("Scan")
def scan_of_batches(
    g, *operands: Value, body: Graph, num_scan_inputs: int, scan_input_axes=None,
    scan_input_directions=None, scan_output_axes=None, scan_output_directions=None, outputs=1,
):  # fmt: skip
    """At opset 8 Scan went over axis 1 of batches, and gave its outputs forward."""
    states = len(operands) - num_scan_inputs
    axes = fill_zeros(scan_input_axes, num_scan_inputs)
    output_axes = fill_zeros(scan_output_axes, outputs - states)
    with g.at_opset(20):
        moved = [
            move_axis_to_front(g, v, axes[i - states]) if i >= states else v
            for i, v in enumerate(operands)
        ]
        batched = [g.Unsqueeze(v, [0]) for v in moved]
    values = g.Scan(
        None, *batched, body=body, num_scan_inputs=num_scan_inputs,
        directions=fill_zeros(scan_input_directions, num_scan_inputs), outputs=outputs,
    )  # fmt: skip
    values = values if isinstance(values, tuple) else (values,)
    for at, (v, inner) in enumerate(zip(values, body.outputs, strict=True)):
        if v.dtype is None and inner.shape is not None:  # onnx infers nothing of this version
            turns = moved[states].ranked_shape[:1] if at >= states else ()
            v.dtype, v.shape = inner.dtype, (1, *turns, *inner.shape)
    backward = fill_zeros(scan_output_directions, outputs - states)
    with g.at_opset(20):
        plain = [g.Squeeze(v, [0]) for v in values]
        return tuple(
            plain[:states]
            + [
                move_axis_from_front(g, g.slice_axis(v, 0, -1, -END, -1) if back else v, axis)
                for v, axis, back in zip(plain[states:], output_axes, backward, strict=True)
            ]
        )


def move_axis_to_front(g, x: Value, axis: int):
    at = axis % x.rank if axis else 0
    return g.Transpose(x, perm=(at, *(a for a in range(x.rank) if a != at))) if at else x


def move_axis_from_front(g, x: Value, axis: int):
    at = axis % x.rank if axis else 0
    return g.Transpose(x, perm=(*range(1, at + 1), 0, *range(at + 1, x.rank))) if at else x


@decomposition(8, "Scan")
def scan_by_looping(g, lengths, *operands: Value, body: Graph, num_scan_inputs: int,
                    directions=None, outputs=1):  # fmt: skip
    """A loop that gathers its turn's part of each input; batches of one only, as made above."""
    require(lengths is None, "sequences of their own lengths; opset 8 is the lowest with Scan")
    require(
        all(v.ranked_shape[0] == 1 for v in operands), "Scan over batches; opset 8 is the lowest"
    )
    states = len(operands) - num_scan_inputs
    plain = [g.Squeeze(v, [0]) for v in operands]
    inner = g.child(body.name)
    turn, go = inner.input("i", DType.INT64, ()), inner.input("go", DType.BOOL, ())
    inner.inputs.extend(body.inputs[:states])
    count = g.Shape(plain[states], start=0, end=1)
    backward = fill_zeros(directions, num_scan_inputs)
    for value, x, back in zip(body.inputs[states:], plain[states:], backward, strict=True):
        at = inner.Sub(inner.Sub(inner.Squeeze(count, [0]), 1), turn) if back else turn
        bind_body_input(inner, inner.Gather(x, at, axis=0), value)
    inner.nodes.extend(body.nodes)
    graph = inner.build([inner.Identity(go), *body.outputs])
    trips = g.Squeeze(count, [0])
    values = g.Loop(trips, g.const(True, DType.BOOL), *plain[:states], body=graph, outputs=outputs)
    values = values if isinstance(values, tuple) else (values,)
    return tuple(g.Unsqueeze(v, [0]) for v in values)


@upgrades[9]("Scan")
def scan_without_batches(g, lengths, *operands: Value, body: Graph, num_scan_inputs: int,
                         directions=None, outputs=1):  # fmt: skip
    """A Scan over the batch around one over each of its sequences."""
    require(lengths is None, "Scan of opset 8 over sequences of their own lengths")
    backward = fill_zeros(directions, num_scan_inputs)
    each = g.child(body.name)
    parts = [each.input("part", v.dtype, v.ranked_shape[1:]) for v in operands]
    with each.at_opset(g.current_opset):
        values = each.Scan(
            *parts, body=body, num_scan_inputs=num_scan_inputs, scan_input_directions=backward,
            outputs=outputs,
        )  # fmt: skip
    graph = each.build(values if isinstance(values, tuple) else (values,))
    return g.Scan(*operands, body=graph, num_scan_inputs=len(operands), outputs=outputs)


@decomposition(17, "SequenceMap")
def map_by_looping(g, first: Value, *others: Value, body: Graph, outputs=1):
    """Carry the sequences made so far round a loop over the first one."""
    inner = g.child(body.name)
    turn, go = inner.input("i", DType.INT64, ()), inner.input("go", DType.BOOL, ())
    sequences = [inner.input("made", v.dtype, v.shape, ("sequence",)) for v in body.outputs]
    for value, x in zip(body.inputs, (first, *others), strict=True):
        bind_body_input(inner, inner.SequenceAt(x, turn) if x.container else x, value)
    inner.nodes.extend(body.nodes)
    grown = [inner.SequenceInsert(s, v) for s, v in zip(sequences, body.outputs, strict=True)]
    graph = inner.build([inner.Identity(go), *grown])
    empty = [g.SequenceEmpty(dtype=ELEMENT_CODES[v.type]) for v in body.outputs]
    return g.Loop(
        g.SequenceLength(first), g.const(True, DType.BOOL), *empty, body=graph, outputs=outputs
    )


@downgrades[18]("OptionalGetElement")
def unwrap_optional(g, x: Value):
    """Before opset 18 only an optional could be asked; anything else is its own element."""
    return g.OptionalGetElement(x) if "optional" in x.container[:1] else x


@downgrades[18]("OptionalHasElement")
def optional_has_element(g, x: Value | None = None):
    if x is None:
        return g.const(False, DType.BOOL)
    return g.OptionalHasElement(x) if "optional" in x.container[:1] else g.const(True, DType.BOOL)
