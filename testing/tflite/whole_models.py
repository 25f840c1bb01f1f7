"""Models of TensorFlow Lite of several subgraphs, of variables and of a custom operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from serde.formats.tflite.encode import LAST_OLD_CODE
from serde.formats.tflite.io.schema import enums
from serde.formats.tflite.io.sources import ORIGIN
from serde.formats.tflite.io.write_flatbuffer import union_number
from serde.ir.graph import Tensor

from .models import Array, Case, Operand, Result, build

Names = Sequence[str]
Body = tuple[Sequence[tuple[str, Names, Names]], Names, Names]  # operators, inputs, outputs
# Maps that the flexbuffers of Google's package flatbuffers wrote.
TOGETHER = bytes.fromhex(
    "6d61785f646574656374696f6e73006d61785f636c61737365735f7065725f646574656374696f6e00757365"
    "5f726567756c61725f6e6d73006e6d735f73636f72655f7468726573686f6c64006e6d735f696f755f746872"
    "6573686f6c64006e756d5f636c617373657300795f7363616c6500785f7363616c6500685f7363616c650077"
    "5f7363616c65000a117e8e4257326910212a00000c0000000000000001000000000000000a00000000000000"
    "0000000000001440020000000000000006000000000000009a9999999999d93f333333333333d33f03000000"
    "0000000000000000000000000000000000001440000000000000244000000000000024400f07070f0f076b0f"
    "0f0f5a2701"
)
BY_CLASS = bytes.fromhex(
    "6d61785f646574656374696f6e73006d61785f636c61737365735f7065725f646574656374696f6e00646574"
    "656374696f6e735f7065725f636c617373007573655f726567756c61725f6e6d73006e6d735f73636f72655f"
    "7468726573686f6c64006e6d735f696f755f7468726573686f6c64006e756d5f636c617373657300795f7363"
    "616c6500785f7363616c6500685f7363616c6500775f7363616c65000b781294a44358336a11222b00000000"
    "0f0000000000000001000000000000000b000000000000000500000000000000000000000000144002000000"
    "0000000006000000000000009a9999999999d93f333333333333d33f03000000000000000100000000000000"
    "000000000000144000000000000024400000000000002440070f07070f0f076b0f0f0f632701"
)
CLASSES, MOST, EACH = 3, 6, 2  # of both maps


def call_subgraphs(
    op: str, options: Mapping[str, Any], bodies: Sequence[Body], inputs: Sequence[Operand]
) -> dict[str, Any]:  # fmt: skip
    """A model whose operator runs subgraphs, which are lists of operators on named tensors."""
    model = build(Case(op, inputs, [Result() for _ in inputs[op == "IF" :]], options))
    codes = model["operator_codes"]
    for operators, names, outputs in bodies:
        tensors = sorted({n for _, a, b in operators for n in (*a, *b)} | {*names, *outputs})
        places = {n: k for k, n in enumerate(tensors)}
        made = []
        for kind, read, results in operators:
            code = enums()["BuiltinOperator"][kind]
            made.append({"opcode_index": len(codes), "inputs": [places[n] for n in read],
                         "outputs": [places[n] for n in results]})  # fmt: skip
            old = min(code, LAST_OLD_CODE)
            codes.append({"deprecated_builtin_code": old, "builtin_code": code, "version": 1})
        entries = [
            {"name": n, "type": enums()["TensorType"]["BOOL" if n == "go" else "FLOAT32"],
             "shape": () if n in ("go", "limit") else (3,), "has_rank": True}
            for n in tensors
        ]  # fmt: skip
        for entry in entries:
            if entry["name"] == "limit":
                entry["buffer"] = len(model["buffers"])
                model["buffers"].append({"data": Tensor.of(np.asarray(20, np.float32))})
                entry["shape"] = ()
        model["subgraphs"].append({
            "tensors": entries, "operators": made, "inputs": [places[n] for n in names],
            "outputs": [places[n] for n in outputs],
        })  # fmt: skip
    return model


ADDS = ([("ADD", ("x", "y"), ("z",))], ("x", "y"), ("z",))
SUBTRACTS = ([("SUB", ("x", "y"), ("z",))], ("x", "y"), ("z",))


def make_branch(inputs: Sequence[Operand]) -> dict[str, Any]:
    """A model that adds its last two inputs, or subtracts them, as the first says."""
    options = {"then_subgraph_index": 1, "else_subgraph_index": 2}
    model = call_subgraphs("IF", options, [ADDS, SUBTRACTS], inputs)
    model["subgraphs"][0]["outputs"] = model["subgraphs"][0]["operators"][0]["outputs"] = [3]
    return model


def make_loop(first: Operand) -> dict[str, Any]:
    """A model that doubles a number until it is 20."""
    goes_on = ([("LESS", ("x", "limit"), ("go",))], ("x",), ("go",))
    doubles = ([("ADD", ("x", "x"), ("z",))], ("x",), ("z",))
    options = {"cond_subgraph_index": 1, "body_subgraph_index": 2}
    model = call_subgraphs("WHILE", options, [goes_on, doubles], [first])
    for graph in model["subgraphs"]:
        for tensor in graph["tensors"]:
            tensor["shape"] = ()
    return model


def make_variable(is_changed: bool, scales: Mapping[str, float] = {}) -> dict[str, Any]:
    """A model that adds a variable, which holds 2 at first, and keeps the sum in it or not.

    With ``scales`` of its tensors, they are of int8, and ``zero`` is -3.
    """
    handle = [("VAR_HANDLE", (), ("h",))]
    model = call_subgraphs("CALL_ONCE", {"init_subgraph_index": 1}, [
        ([*handle, ("ASSIGN_VARIABLE", ("h", "first"), ())], (), ()),
        ([*handle, ("READ_VARIABLE", ("h",), ("v",)), ("ADD", ("x", "v"), ("z",)),
          *([("ASSIGN_VARIABLE", ("h", "z"), ())] if is_changed else [])], ("x",), ("z",)),
    ], [Operand(np.zeros(3, np.float32))])  # fmt: skip
    once, (init, main) = model["subgraphs"][0]["operators"][0], model["subgraphs"][1:]
    for graph in (init, main):
        for tensor in graph["tensors"]:
            if tensor["name"] == "h":
                tensor |= {"type": enums()["TensorType"]["RESOURCE"], "shape": ()}
            elif tensor["name"] == "first":
                tensor["buffer"] = len(model["buffers"])
                first = np.full(3, 2, np.int8 if scales else np.float32)
                model["buffers"].append({"data": Tensor.of(first)})
            if tensor["name"] in scales:
                quantization = {"scale": [scales[tensor["name"]]], "zero_point": [-3]}
                tensor |= {"type": enums()["TensorType"]["INT8"], "quantization": quantization}
        handles = [o for o in graph["operators"] if not o["inputs"]]
        handles[0] |= {"builtin_options": ("VarHandleOptions", {"shared_name": "count"}),
                       "builtin_options_type": union_number("BuiltinOptions", "VarHandleOptions")}  # fmt: skip
    main["operators"].insert(0, {**once, "inputs": (), "outputs": ()})
    model["subgraphs"] = [main, init]
    return model


def make_detection(options: bytes, classes: int, seed: int) -> tuple[dict[str, Any], list[Array]]:
    """A model of the custom operator of detectors, and what it is fed with."""
    draws = np.random.default_rng(seed)
    anchors = np.concatenate([draws.random((30, 2)), draws.uniform(0.05, 0.5, (30, 2))], 1)
    case = Case("ADD", [
        Operand(draws.standard_normal((1, 30, 4)).astype(np.float32)),
        Operand(draws.random((1, 30, classes)).astype(np.float32)),
        Operand(anchors.astype(np.float32), is_constant=True),
    ], [Result()] * 4)  # fmt: skip
    return make_custom("TFLite_Detection_PostProcess", options, case), case.feeds()


def make_custom(name: str, options: bytes, case: Case) -> dict[str, Any]:
    """A model of a custom operator in place of that of a case."""
    model = build(case)
    model["operator_codes"] = [{"builtin_code": 32, "custom_code": name}]
    (operator,) = model["subgraphs"][0]["operators"]
    model["subgraphs"][0]["operators"] = [
        {"inputs": operator["inputs"], "outputs": operator["outputs"],
         "custom_options": [*options]}
    ]  # fmt: skip
    return model


def list_whole_models() -> list[dict[str, Any]]:
    """One of each."""
    numbers = [Operand(np.ones(3, np.float32))] * 2
    recorded = build(Case("ADD", numbers))
    text = np.frombuffer(b"onnx Add sum\ty0\nonnx Relu act\ty0\n", np.uint8)
    recorded["metadata"] = [{"name": ORIGIN, "buffer": len(recorded["buffers"])}]
    recorded["buffers"].append({"data": Tensor.of(text)})
    return [
        make_branch([Operand(np.asarray(True)), *numbers]),
        make_loop(Operand(np.asarray(1.5, np.float32))),
        *map(make_variable, (True, False)),
        *(make_detection(options, CLASSES, 0)[0] for options in (TOGETHER, BY_CLASS)), recorded,
    ]  # fmt: skip
