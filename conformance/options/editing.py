"""What makes other models of a model: cuts, joins, fixed inputs and sizes, new names."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from click.testing import CliRunner
from onnx import TensorProto, helper

import serde
from serde.cli.commands import main as serde_command

from ..matrix import NotRun
from .cells import differ, run, run_optimized, write
from .models import Arrays, Model
from .opsets import list_names

CUTS = 3  # values that each model is cut at


def choose_values(model: Model, seed: int) -> list[str]:
    """Some of the values of float tensors that nodes compute, by name."""
    graph = onnx.shape_inference.infer_shapes(model.proto).graph
    kinds = {i.name: i.type.tensor_type.elem_type for i in graph.value_info}
    names = [n for node in graph.node for n in node.output
             if kinds.get(n) == TensorProto.FLOAT and n not in model.outputs]  # fmt: skip
    return random.Random(seed).sample(names, min(CUTS, len(names)))


def compute(model: Model, values: list[str]) -> Arrays:
    """What a model's own nodes compute for values inside."""
    proto = onnx.ModelProto.FromString(model.proto.SerializeToString())
    del proto.graph.output[:]
    proto.graph.output.extend(
        helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in values
    )
    return dict(zip(values, run(proto, model.feeds), strict=True))


def require_values(model: Model) -> list[str]:
    """Values to cut at."""
    if values := choose_values(model, len(model.proto.graph.node)):
        return values
    raise NotRun("it has no value inside")


def convert(path: Path, target: Path, feeds: Arrays, **options: Any) -> None:
    """Convert with verification on ``feeds``, which has to pass what is right.

    Raises:
        AssertionError: where it fails on a result that computes what it should.
    """
    verification = serde.convert(path, target, verify=True, data=feeds, **options).verification
    assert not verification.done or verification.ok, f"verification fails: {verification}"


def cut_outputs(model: Model, folder: Path) -> str | None:
    """Outputs are what the source computes inside."""
    path, target, values = write(model, folder), folder / "cut.onnx", require_values(model)
    convert(path, target, model.feeds, outputs=values)
    if (names := list_names(onnx.load(target))[1]) != values:
        return f"outputs are called {names}, not {values}"
    return differ(run_optimized(target, model.feeds), [*compute(model, values).values()])


def cut_inputs(model: Model, folder: Path) -> str | None:
    """A model that begins at values inside, fed with what the source computes for them."""
    path, target, values = write(model, folder), folder / "cut.onnx", require_values(model)
    inputs = [n for n in model.feeds if is_read(model, n, values)]
    feeds = {**model.feeds, **compute(model, values)}
    convert(path, target, feeds, cut_inputs=[*values, *inputs])
    if missing := {n for n in values if n not in list_names(onnx.load(target))[0]} and [
        n for n in values if is_read(model, n, values)
    ]:
        return f"no inputs {missing}"
    return differ(run_optimized(target, feeds), run(model.proto, model.feeds))


def is_read(model: Model, value: str, values: list[str]) -> bool:
    """Whether an output depends on a value by a way without another one."""
    readers: dict[str, set[str]] = {}
    for node in model.proto.graph.node:
        for name in node.input:
            readers.setdefault(name, set()).update(node.output)
    stack, seen = [value], set[str]()
    while stack:
        name = stack.pop()
        if name in model.outputs:
            return True
        new = {n for n in readers.get(name, ()) if n not in seen and n not in values}
        seen |= new
        stack += new
    return False


def join_parts(model: Model, folder: Path) -> str | None:
    """The parts before and behind a value, joined again."""
    path, value = write(model, folder), require_values(model)[0]
    first, second, target = (folder / f"{n}.onnx" for n in ("first", "second", "joined"))
    serde.convert(path, first, outputs=[value])
    if any(is_read(model, n, [value]) for n in model.feeds):
        raise NotRun("the second part has other inputs")
    serde.convert(path, second, cut_inputs=[value])
    invoke("join", first, second, "-o", target)
    if list_names(onnx.load(target)) != list_names(model.proto):
        return f"names became {list_names(onnx.load(target))}"
    return differ(run_optimized(target, model.feeds), run(model.proto, model.feeds))


def join_twice(model: Model, folder: Path) -> str | None:
    """One output that two inputs of the second model take."""
    path, target, adder = write(model, folder), folder / "joined.onnx", folder / "adder.onnx"
    output = next((o for o in model.proto.graph.output
                   if o.type.tensor_type.elem_type == TensorProto.FLOAT), None)  # fmt: skip
    if output is None:
        raise NotRun("it has no output of floats")
    info = helper.make_tensor_value_info
    names = (*("a", "b"), output.name)  # the second model's output is called like the first's
    values = [info(n, TensorProto.FLOAT, None) for n in names]
    node = helper.make_node("Add", names[:2], names[2:])
    graph = helper.make_graph([node], "adder", values[:2], values[2:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), adder)
    links = [f"--connect={output.name}={n}" for n in names[:2]]
    invoke("join", path, adder, "-o", target, *links)
    inputs, outputs = list_names(onnx.load(target))
    if inputs != list_names(model.proto)[0] or outputs[0] != output.name:
        return f"inputs {inputs}, outputs {outputs}"
    expected = run(model.proto, model.feeds)[model.outputs.index(output.name)]
    return differ(run_optimized(target, model.feeds)[:1], [expected + expected])


def invoke(*arguments: Any) -> None:
    """Run the command; raise what it says where it fails."""
    from serde.errors import UsageError

    result = CliRunner().invoke(serde_command, [str(a) for a in arguments])
    if result.exit_code:
        raise UsageError(result.output)


def name_sizes(model: Model, sums: bool, folder: Path) -> tuple[Path, dict[str, int]]:
    """The file of a model whose inputs have names for sizes, and these sizes."""
    proto, sizes = onnx.ModelProto.FromString(model.proto.SerializeToString()), {}
    for name in model.feeds:
        info = next(i for i in proto.graph.input if i.name == name)
        for axis, size in enumerate(np.shape(model.feeds[name])):
            dim = info.type.tensor_type.shape.dim[axis]
            label = f"d{len(sizes)}"
            if sums and size > 1:
                sizes |= {f"p{label}": 1, f"n{label}": size - 1}
                dim.dim_param = f"p{label} + n{label}"
            else:
                sizes[label] = size
                dim.dim_param = label
    path = folder / "named.onnx"
    onnx.save(proto, path)
    return path, sizes


def fix_sizes(sums: bool, model: Model, folder: Path) -> str | None:
    """Names of sizes that become the numbers they stand for."""
    path, sizes = name_sizes(model, sums, folder)
    if not sizes:
        raise NotRun("its inputs have no axes")
    target = folder / "static.onnx"
    convert(path, target, model.feeds, static=sizes)
    for info in onnx.load(target).graph.input:
        dims = [d.dim_value for d in info.type.tensor_type.shape.dim]
        if tuple(dims) != np.shape(model.feeds[info.name]):
            return f"{info.name} has shape {dims}"
    return differ(run_optimized(target, model.feeds), run(model.proto, model.feeds))


def fix_input(model: Model, folder: Path) -> str | None:
    """The last input as a constant."""
    path, target, name = write(model, folder), folder / "fixed.onnx", [*model.feeds][-1]
    convert(path, target, model.feeds, set_inputs={name: model.feeds[name]})
    if name in list_names(onnx.load(target))[0]:
        return f"{name} is an input still"
    return differ(run_optimized(target, model.feeds), run(model.proto, model.feeds))


def rename(model: Model, folder: Path) -> str | None:
    """Inputs and outputs by names that nodes inside may have; the first two change places."""
    path, target = write(model, folder), folder / "renamed.onnx"
    inputs, outputs = list_names(model.proto)
    inner = choose_values(model, 1)
    names = [*inputs, *outputs]
    new_names = dict(zip(names, [*names[1:2], *names[:1], *names[2:]], strict=True))
    if inner:
        new_names[outputs[-1]] = inner[0]
        if len(names) == 2:
            new_names[inputs[0]] = outputs[0]
    feeds = {new_names.get(n, n): a for n, a in model.feeds.items()}
    convert(path, target, feeds, rename=new_names)
    expected = [new_names[n] for n in inputs], [new_names[n] for n in outputs]
    if list_names(onnx.load(target)) != expected:
        return f"names became {list_names(onnx.load(target))}, not {expected}"
    return differ(run_optimized(target, feeds), run(model.proto, model.feeds))


def convert_with(option: str, model: Model, folder: Path) -> str | None:
    """An option that leaves the numbers as they are."""
    path, target = write(model, folder), folder / "converted.onnx"
    convert(path, target, model.feeds, **{option: True})
    return differ(run_optimized(target, model.feeds), run(model.proto, model.feeds))


PROPERTIES: dict[str, Callable[[Model, Path], str | None]] = {
    "--outputs": cut_outputs,
    "--cut-inputs": cut_inputs,
    "join": join_parts,
    "join, one output twice": join_twice,
    "--static": partial(fix_sizes, False),
    "--static, sums of names": partial(fix_sizes, True),
    "--set-input": fix_input,
    "--rename": rename,
    "--fold-batchnorm": partial(convert_with, "fold_batchnorm"),
    "--training": partial(convert_with, "training"),
}
