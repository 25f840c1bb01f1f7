"""Models of counts, repetition and nesting, made from nothing by a grammar of each format.

Changing bytes hardly ever makes a count large and keeps the rest of a file whole. These are whole:
well-formed models of operators that there are rules for, with attributes and shapes that claim
much, chains and tuples that repeat, and functions and bodies within each other.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import onnx
from onnx import TensorProto, helper

from serde.formats.relay import registry
from serde.plugins import get_format
from testing.fuzz import mutations

COUNTS = (0, 1, 2, 3, 7, 100, 1000, 4097, 65_537, 10**6, 16_777_217, 3 * 10**8, 10**9, 2**31 - 1)
SIZES = (1, 2, 3, 4, 8, 64, 1000, 65_536, 10**6, 10**9)
REPEATS = (2, 10, 50, 300)
DEEPEST = 40


def make(reader: str, random: Random) -> bytes:
    """A model for one of ``MAKERS``."""
    return MAKERS[reader](random)


def small(random: Random) -> int:
    """A size that is usually small."""
    return random.choice(SIZES[:6] if random.random() < 0.8 else SIZES)


def count(random: Random) -> int:
    """A count that is often large."""
    return random.choice(COUNTS)


# ONNX


def make_onnx(random: Random) -> bytes:
    """One operator of counts, or many in a chain, or bodies within bodies."""
    kind = random.randrange(4)
    model = (
        _onnx_node(random) if kind < 2 else _onnx_chain(random) if kind == 2 else _onnx_nest(random)
    )
    return bytes(model.SerializeToString())


def _onnx_node(random: Random) -> onnx.ModelProto:
    """A node of any operator, whose integers and sizes are counts."""
    model = mutations.one_node(random)
    for attribute in model.graph.node[0].attribute:
        if attribute.type == onnx.AttributeProto.INT and random.random() < 0.4:
            attribute.i = count(random)
        for at in range(len(attribute.ints)):
            if random.random() < 0.3:
                attribute.ints[at] = count(random)
    for tensor in model.graph.initializer:
        for at in range(len(tensor.int64_data)):
            tensor.int64_data[at] = count(random)
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value and random.random() < 0.3:
                dim.dim_value = small(random)
    return model


def _onnx_chain(random: Random) -> onnx.ModelProto:
    """A node's result doubled again and again: by Concat, Add, Sum, Expand, Tile or functions."""
    length, size = random.choice(REPEATS), small(random)
    op = random.choice(("Concat", "Add", "Max", "Tile", "Split", "Einsum", "F0"))
    nodes, last = [], "x"
    for at in range(length):
        name = f"y{at}"
        if op == "Tile":
            nodes.append(helper.make_node("Tile", [last, "two"], [name]))
        elif op == "Split":
            nodes.append(helper.make_node("Split", [last], [name, f"z{at}"], axis=0))
        elif op == "Einsum":
            nodes.append(helper.make_node("Einsum", [last, last], [name], equation="i,i->i"))
        elif op == "F0":
            nodes.append(helper.make_node("F0", [last], [name], domain="local"))
        else:
            more = {"axis": 0} if op == "Concat" else {}
            nodes.append(helper.make_node(op, [last, last], [name], **more))
        last = name
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [info("x", 1, [size])], [info(last, 1, None)],
        [helper.make_tensor("two", TensorProto.INT64, [1], [random.choice((2, count(random)))])],
    )  # fmt: skip
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    depth = random.randint(1, DEEPEST)
    functions = [_onnx_function(at, at + 1 < depth) for at in range(depth)] if op == "F0" else []
    return helper.make_model(graph, opset_imports=imports, ir_version=8, functions=functions)


def _onnx_function(at: int, calls: bool) -> onnx.FunctionProto:
    """A function that calls the next one twice."""
    op, domain = (f"F{at + 1}", "local") if calls else ("Relu", "")
    nodes = [helper.make_node(op, [i], [o], domain=domain) for i, o in (("a", "b"), ("b", "c"))]
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_function("local", f"F{at}", ["a"], ["c"], nodes, imports)


def _onnx_nest(random: Random) -> onnx.ModelProto:
    """Loops within loops, or branches within branches."""
    info = helper.make_tensor_value_info
    op, size = random.choice(("Loop", "If")), small(random)
    inner = [helper.make_node("Relu", ["x0"], ["r0"])]
    for at in range(random.choice((1, 3, 10, 20))):
        result = f"r{at}"
        if op == "If":
            body = helper.make_graph(inner, f"b{at}", [], [info(result, 1, [size])])
            node = helper.make_node("If", ["c"], [f"r{at + 1}"], then_branch=body, else_branch=body)
            if at > 6:  # both branches hold all below
                break
        else:
            going = helper.make_node("Identity", ["c"], [f"g{at}"])
            body = helper.make_graph(
                [going, *inner], f"b{at}",
                [info(f"i{at}", 7, []), info(f"c{at}", 9, []), info(f"s{at}", 1, [size])],
                [info(f"g{at}", 9, []), info(result, 1, [size])],
            )  # fmt: skip
            node = helper.make_node("Loop", ["n", "", "x0"], [f"r{at + 1}"], body=body)
        inner = [node]
    last = inner[0].output[0]
    turns = helper.make_tensor("n", TensorProto.INT64, [], [count(random)])
    graph = helper.make_graph(inner, "g", [info("x0", 1, [size]), info("c", 9, [])],
                              [info(last, 1, None)], [turns])  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


# MXNet


@cache
def _mxnet_rules() -> list[tuple[str, Any]]:
    (reads, *_) = get_format("mxnet").rule_tables()
    return sorted(reads.rules.items())


def make_mxnet_symbol(random: Random) -> bytes:
    """Operators there are rules for, with their declared attributes; some of them in chains."""
    nodes: list[dict[str, Any]] = []
    for at in range(random.randint(1, 4)):
        nodes.append({"op": "null", "name": "data" if at == 0 else f"x{at}", "inputs": []})
        if random.random() < 0.9:
            shape = [small(random) for _ in range(random.randint(1, 5))]
            nodes[-1]["attrs"] = {"__shape__": str(tuple(shape))}
    arguments = len(nodes)
    repeats = random.choice(REPEATS) if random.random() < 0.2 else random.randint(1, 3)
    op, rule = random.choice(_mxnet_rules())
    for at in range(repeats):
        if repeats < REPEATS[1] and at:
            op, rule = random.choice(_mxnet_rules())
        fewest, most = rule.operands
        count = random.randint(fewest, fewest + 3 if most is None else max(fewest, most))
        first = len(nodes) - 1 if at else 0
        inputs = [[random.randrange(len(nodes)) if i else first, 0, 0] for i in range(count)]
        attrs = {
            name: _mxnet_value(attribute, random)
            for name, attribute in rule.attributes.items()
            if random.random() < 0.6
        }
        nodes.append({"op": op, "name": f"n{at}", "attrs": attrs, "inputs": inputs})
    outputs = [[len(nodes) - 1, 0, 0]] * random.choice((1, 1, 1, 300))
    return json.dumps({"nodes": nodes, "arg_nodes": [*range(arguments)], "heads": outputs}).encode()


def _mxnet_value(attribute: Any, random: Random) -> str:
    """A value of the kind that the rule declares, mostly."""
    default = getattr(attribute, "default", None)
    kind = str(getattr(attribute, "kind", ""))
    if isinstance(default, bool):
        return random.choice(("True", "False"))
    if isinstance(default, str) and default:
        return default
    if ("int" in kind and "tuple" not in kind) or isinstance(default, int):
        return str(count(random))
    if ("float" in kind and "tuple" not in kind) or isinstance(default, float):
        return random.choice(("0.5", "1e-5", "3.0", str(float(count(random)))))
    if "str" in kind:
        return random.choice(("float32", "int32", "max", "avg", "relu", "constant", "lstm"))
    many = random.choice((1, 2, 2, 4, 3000)) if random.random() < 0.1 else random.randint(1, 4)
    return str(tuple(count(random) if random.random() < 0.4 else 1 for _ in range(many)))


# Relay


@cache
def _relay_operators() -> list[str]:
    (reads, *_) = get_format("relay").rule_tables()
    return sorted(op for op in reads.rules if registry.is_registered(op))


def make_relay_text(random: Random) -> bytes:
    """Calls with attributes of counts, tuples and functions that double, chains, recursion."""
    kind = random.randrange(5)
    shape = ", ".join(str(small(random)) for _ in range(random.randint(1, 5)))
    tensor = f"Tensor[({shape}), float32]"
    if kind < 3:
        lines = [f"def @main(%x: {tensor}, %y: {tensor}) {{ {_relay_call(random)} }}"]
    elif kind == 3:
        length = random.choice((*REPEATS, 30, 40))
        parts = random.choice(("(%{0}, %{0})", "add(%{0}, %{0})", "(%{0}, %{0}, %{0})"))
        ends = random.choice(("%{0}", "concatenate(%{0}, axis=0)", "%{0}.0"))
        steps = [f"%{at + 1} = {parts.format(at)};" for at in range(length)]
        body = "\n".join(["%0 = nn.relu(%x);", *steps, ends.format(length)])
        lines = [f"def @main(%x: {tensor}) {{ {body} }}"]
    else:
        lines = _relay_functions(tensor, random)
    return "\n".join(['#[version = "0.0.5"]', *lines]).encode()


def _relay_call(random: Random) -> str:
    op = random.choice(_relay_operators())
    key = registry.attrs_key(op)
    declared = registry.fields(key) if key else None
    attrs = [f"{name}={_relay_value(field, random)}" for name, field in (declared or {}).items()
             if random.random() < 0.7]  # fmt: skip
    operands = ["%x", "%y", "(%x, %y)", "meta", f"{count(random)}", "%x"]
    args = [random.choice(operands[:2] if random.random() < 0.8 else operands[:3])
            for _ in range(random.randint(1, 3))]  # fmt: skip
    return f"{op}({', '.join([*args, *attrs])})"


def _relay_value(field: Any, random: Random) -> str:
    if field.kind == "b":
        return random.choice(("True", "False"))
    if field.kind == "d":
        return random.choice(("0.5f", "1e-05f", f"{count(random)}f"))
    if field.kind == "i":
        return str(count(random))
    if field.kind in "st" and isinstance(field.default, str):
        return f'"{field.default}"'
    if field.kind in "st":
        return random.choice(('"float32"', '"NCHW"', '"int32"', '"max"'))
    many = [count(random) if random.random() < 0.5 else 1 for _ in range(random.randint(1, 4))]
    return str(many) if random.random() < 0.8 else str(count(random))


def _relay_functions(tensor: str, random: Random) -> list[str]:
    """Functions that call each other twice, or themselves."""
    depth = random.randint(1, DEEPEST)
    calls = random.choice(("@f{0}(@f{0}(%x))", "add(@f{0}(%x), @f{0}(%x))", "@f{0}(%x)"))
    lines = [f"def @f0(%x: {tensor}) -> {tensor} {{ nn.relu(%x) }}"]
    lines += [f"def @f{at}(%x: {tensor}) -> {tensor} {{ {calls.format(at - 1)} }}"
              for at in range(1, depth)]  # fmt: skip
    if random.random() < 0.5:
        step = random.choice(("@g(subtract(%n, 1), nn.relu(%x))",
                              "add(@g(subtract(%n, 1), %x), @g(subtract(%n, 2), %x))",
                              "nn.relu(@g(subtract(%n, 1), %x))"))  # fmt: skip
        lines.append(f"def @g(%n: int32, %x: {tensor}) -> {tensor} "
                     f"{{ if (less(%n, 1)) {{ %x }} else {{ {step} }} }}")  # fmt: skip
        return [*lines, f"def @main(%x: {tensor}) {{ @g({count(random)}, %x) }}"]
    return [*lines, f"def @main(%x: {tensor}) {{ @f{depth - 1}(%x) }}"]


MAKERS: dict[str, Callable[[Random], bytes]] = {
    "onnx": make_onnx,
    "mxnet-symbol": make_mxnet_symbol,
    "relay-text": make_relay_text,
}
