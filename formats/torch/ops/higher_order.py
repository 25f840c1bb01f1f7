"""Branches and loops as calls that ``torch.export`` takes: ``torch.cond`` and ``while_loop``.

Both take functions. What these return must be arrays of their own, whose elements lie in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from serde.errors import require
from serde.ir.graph import DType, Graph, Node, Value
from serde.rewrite.subgraphs import list_outer_values

from ..target import TorchBuilder
from .elementwise import read_number

COND, WHILE = "torch.cond", "while_loop"
IN_ORDER = "copy in order"  # whose strides are those of its shape, axes of size 1 included
ELSE = "or write the module without --exportable"
# Results that may lie in the memory of their operand, and those whose axes may lie in it turned.
VIEWS = frozenset(
    "alias [] .reshape .flatten .unsqueeze .squeeze .permute .expand .to .split nn.Dropout".split()
)
TURNED = frozenset(
    ".permute .expand torch.einsum F.scaled_dot_product_attention nn.LSTM nn.GRU nn.RNN".split()
)


def write_cond(t: TorchBuilder, condition: Value, then_branch: Graph, else_branch: Graph):
    for first, second in zip(then_branch.outputs, else_branch.outputs, strict=True):
        is_alike = first.dtype is second.dtype and _rank_of(first) == _rank_of(second)
        require(is_alike, f"branches whose results are {_describe(first)} and {_describe(second)}, "
                f"which torch.cond does not take. Let both be of one type and rank, {ELSE}"
                )  # fmt: skip
    functions = {
        name: _make_function(t, name, (), body.nodes, body.outputs)
        for name, body in (
            ("true_fn", without_aliases(then_branch)),
            ("false_fn", without_aliases(else_branch)),
        )
    }
    outer = list_outer_values(*functions.values())
    return t.emit(COND, (condition, outer), functions, len(then_branch.outputs))


def write_while_loop(
    t: TorchBuilder, most: Value | None, begins: Value | None, states: Sequence[Value], body: Graph,
    is_endless: bool,
):  # fmt: skip
    """A loop that carries its turn, whether it goes on, its states, and arrays for the rows.

    ``is_endless`` says that nothing but the number of turns ends it once it has begun.
    """
    body = without_aliases(body)
    turn, going, *inside = body.inputs
    ends, rows = body.outputs[1 : 1 + len(states)], body.outputs[1 + len(states) :]
    require(most is not None or not rows, "a loop that stacks the results of as many turns as its "
            f"condition says. Give it a number of turns, {ELSE}")  # fmt: skip
    for start, within, end in zip(states, inside, ends, strict=True):
        is_kept = all(v.dtype is start.dtype and _has_sizes_of(v, start) for v in (within, end))
        require(is_kept, f"a loop that makes {_describe(end)} of {_describe(start)}, which "
                f"while_loop does not take. Keep the type and the shape, {ELSE}")  # fmt: skip
    is_flagged = begins is not None or not is_endless or is_read(going, body)
    require(most is not None or is_flagged, "a loop without an end. Give it a number of turns")
    test, step = t.child("cond_fn"), t.child("body_fn")
    step.nodes += body.nodes
    limit = None if most is None else _limit_turns(t, most)
    arrays = [Value(t.names.fresh("rows"), row.dtype) for row in rows]
    place = step[".reshape"](turn, 1) if rows else None
    stacked = [step[".index_copy"](array, 0, place, step[".unsqueeze"](row, 0))
               for array, row in zip(arrays, rows, strict=True)]  # fmt: skip
    carried = [*zip(inside, (_settle(t, s, t.makers) for s in states), ends, strict=True),
               *zip(arrays, (_make_rows(t, most, r, states) for r in rows), stacked, strict=True)
               ]  # fmt: skip
    stems = [*("" for _ in inside), *("rows" for _ in rows)]
    asked = []
    if is_flagged:
        asked.append(going)
        begin = t.torch.tensor(True) if begins is None else _as_scalar(t, begins)
        stems.insert(0, "going")
        carried.insert(0, (going, begin, _as_scalar(step, body.outputs[0])))
    if limit is not None or is_read(turn, body):
        zero = t.torch.zeros((), dtype=DType.INT64, device=t.device())
        stems.insert(0, "i")
        carried.insert(0, (turn, zero, step["+"](turn, 1)))
    if limit is not None:
        asked.insert(0, test["<"](turn, limit))
    answer = asked[0] if len(asked) == 1 else test["&"](*asked)
    inputs, starts, results = zip(*carried, strict=True)
    functions = {"cond_fn": _make_function(t, test.name, inputs, test.nodes, (answer,)),
                 "body_fn": _make_function(t, step.name, inputs, step.nodes, results)}  # fmt: skip
    outer = list_outer_values(*functions.values())
    form = {**functions, "stems": tuple(stems)}
    outputs = t.emit(WHILE, (starts, outer), form, len(starts))
    first = len(starts) - len(states) - len(rows)
    kept, stacks = outputs[first : first + len(states)], outputs[first + len(states) :]
    if is_flagged and rows:  # there may be fewer turns
        done = t[".item"](outputs[0])
        stacks = [t["[]"](stack, slice(done)) for stack in stacks]
    return *kept, *stacks


def without_aliases(graph: Graph) -> Graph:
    """A body whose outputs are what they are second names of."""
    aliases = {n.outputs[0]: n for n in graph.nodes if n.op == "alias"}
    outputs = []
    for value in graph.outputs:
        while value in aliases:
            value = aliases[value].inputs[0]  # type: ignore[assignment]
        outputs.append(value)
    nodes = tuple([n for n in graph.nodes if n.op != "alias" or n.outputs[0] not in graph.outputs])
    return replace(graph, nodes=nodes, outputs=tuple(outputs))


def is_read(value: Value, body: Graph) -> bool:
    """Whether a body reads a value, but for its condition."""
    return value in body.outputs[1:] or any(value in node.inputs for node in body.nodes)


def _limit_turns(t: TorchBuilder, most: Value):
    """The number of turns: a number, a size, or a tensor."""
    if most.tensor is not None:
        return read_number(most)
    sizes = t.find_sizes(most)
    return _as_scalar(t, most) if sizes is None else sizes[0]


def _make_rows(t: TorchBuilder, most: Value, row: Value, states: Sequence[Value]) -> Value:
    """Room for the results of all turns."""
    count = _limit_turns(t, most)
    if isinstance(count, Value) and count.dtype is not None:
        count = t[".item"](t[".clamp"](most, min=0))
    sizes = [t.find_size(d, *states) for d in row.shape or (None,)] if row.shape != () else []
    require(None not in sizes, f"a loop that stacks {_describe(row)}, whose size torch.export must "
            f"know. Fix its shape, {ELSE}")  # fmt: skip
    dtype = None if row.dtype is DType.FLOAT32 else row.dtype
    return t.torch.empty((count, *sizes), dtype=dtype, device=t.device())


def _make_function(
    t: TorchBuilder, name: str, inputs: Sequence[Value], nodes: Sequence[Node],
    outputs: Sequence[Value],
) -> Graph:  # fmt: skip
    """A function whose results share no memory, with its operands or with each other."""
    function = t.child(name)
    function.inputs += inputs
    function.nodes += nodes
    makers = {v: node for node in nodes for v in node.outputs}
    roots = set()
    results = []
    for value in outputs:
        result, root = _settle(function, value, makers), value
        while root in makers and makers[root].op in VIEWS:
            base = makers[root].inputs[0]
            assert base is not None
            root = base
        if result is value and (root not in makers or root in roots):
            result = function[".clone"](value)
        roots.add(root)
        results.append(result)
    return function.build(results)


def _settle(t: TorchBuilder, value: Value, makers: Mapping[Value, Node]) -> Value:
    """A value whose elements lie in order."""
    stack, seen = [value], set()
    while stack:
        maker = makers.get(stack.pop())
        if maker is None or maker in seen:
            continue
        if maker.op in TURNED:
            return t[IN_ORDER](value)
        seen.add(maker)
        stack += [v for v in maker.inputs if v is not None]
    return value


def _as_scalar(t: TorchBuilder, value: Value) -> Value:
    return value if value.shape == () else t[".reshape"](value, ())


def _rank_of(value: Value) -> int | None:
    return None if value.shape is None else len(value.shape)


def _has_sizes_of(value: Value, other: Value) -> bool:
    """Whether nothing that is known of two shapes differs."""
    if value.shape is None or other.shape is None:
        return True
    return value.shape == other.shape


def _describe(value: Value) -> str:
    shape = "any shape" if value.shape is None else str(list(value.shape))
    return f"{value.dtype.value if value.dtype else 'any type'} of {shape}"
