"""Batch normalizations that an exporter has folded into the layers before them, as modules again.

Their weights are in the layer's, so that the module computes what the file does with scales of one
and statistics that change nothing; a checkpoint of the model fills in its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from serde.ir.dim_expr import is_number
from serde.ir.graph import Node, Tensor, Value

from ..target import Module, Slot
from .scopes import Path, Scope

FOLDED = re.compile(r"batch_norm\w*\.default\]\(args = \(%\w+, %p_\w+, %p_\w+, %b_\w+, %b_\w+, "
                    r"(?:\w+, )?([\d.e-]+), ([\d.e-]+)")  # fmt: skip
AXES = {"nn.Conv1d": 1, "nn.Conv2d": 2, "nn.Conv3d": 3, "nn.ConvTranspose1d": 1,
        "nn.ConvTranspose2d": 2, "nn.ConvTranspose3d": 3, "nn.Linear": 1}  # fmt: skip
EPSILON_IS = (
    "Batch norms that the exporter folded, whose names and epsilon of 1e-05 are the usual ones; "
    "export with training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False where they "
    "are not"
)
MOMENTUM, EPSILON = 0.1, 1e-5  # PyTorch's defaults


def unfold_batch_norms(
    nodes: list[Node], scopes: dict[Node, Scope], keys_of: Callable[[Value], list[str]],
    assume: Callable[[str, str], None],
) -> list[Node]:  # fmt: skip
    """The nodes, with a normalization behind each layer that one was folded into."""
    paths = {path for scope in scopes.values() for path in scope.modules}
    guess = _Followers(nodes, scopes, paths, keys_of)
    result: list[Node] = []
    for node in nodes:
        scope = scopes.get(node)
        module = node.attrs.get("module")
        is_layer = node.op in AXES and isinstance(module, Module) and len(module.parameters) == 2
        norm = _find(node, scope, guess, keys_of) if is_layer and scope is not None else None
        if norm is None:
            result.append(node)
        else:
            if not scopes[node].text:
                assume(EPSILON_IS, ".".join(norm[1]))
            result += _split(node, scopes, paths, *norm)
    return result


def _find(
    node: Node, scope: Scope, guess: _Followers, keys_of: Callable[[Value], list[str]]
) -> tuple[Path, Path, bool, float, float] | None:
    """The layer and its normalization, whether the layer has a bias, momentum and epsilon."""
    weight, bias = node.inputs[-2:]
    assert weight is not None and bias is not None
    keys = keys_of(weight)
    told = FOLDED.search(scope.text)
    if told is not None and keys and keys[0].endswith(".weight"):
        layer = tuple(keys[0].split("."))[:-1]
        has_bias = keys_of(bias) == [".".join((*layer, "bias"))]
        return layer, scope.path, has_bias, float(told[1]), float(told[2])
    if keys or keys_of(bias) or not scope.path or node.op == "nn.Linear" or scope.classes:
        return None
    # An exporter that writes no metadata names neither array, and the normalization nowhere.
    path = guess.find(scope.path)
    return None if path is None else (scope.path, path, False, MOMENTUM, EPSILON)


class _Followers:
    """What normalizations behind convolutions are called, by the names around them."""

    def __init__(
        self, nodes: list[Node], scopes: dict[Node, Scope], paths: set[Path],
        keys_of: Callable[[Value], list[str]],
    ) -> None:  # fmt: skip
        self.paths = paths
        self.word = "bn"
        self.keys: set[Path] = set()
        self.order: dict[Path, list[str]] = {}  # the layers of each module
        for node in nodes:
            for value in node.inputs:
                if value is not None and value.tensor is not None:
                    self.keys.update(tuple(k.split("."))[:-1] for k in keys_of(value) if "." in k)
            path = scopes[node].path if node in scopes else ()
            if path and node.op in AXES:
                self.order.setdefault(path[:-1], []).append(path[-1])
            if path and node.op.startswith("nn.BatchNorm"):
                word = re.sub(r"\d+$", "", path[-1])
                self.word = word if word in ("bn", "norm", "batch_norm") else self.word

    def find(self, path: Path) -> Path | None:
        """The place of the normalization behind a layer, if there may be one."""
        *around, name = path
        if is_number(name):
            after = (*around, str(int(name) + 1))
            return None if after in self.paths or after in self.keys else after
        if "conv" not in name:
            after = (*around, self.word)
            return None if after in self.keys else after
        ordinal = self.order[path[:-1]].index(name) + 1
        named = name.replace("conv", self.word)
        is_plain = re.fullmatch(r"conv\d*", name) is not None or len(self.order[path[:-1]]) == 1
        first = named if is_plain else f"{self.word}{ordinal}"
        used = [p[-1].removeprefix(self.word) for p in self.keys if p[:-1] == path[:-1]]
        numbers = [int(n) for n in used if is_number(n)]
        names = [first, f"{self.word}{ordinal}", named, f"{self.word}{max(numbers, default=0) + 1}"]
        is_seen = (*around, f"{self.word}1") in self.paths
        if is_plain and (*around, named) not in self.paths and is_seen:
            names.insert(0, f"{self.word}1")
        free = [(*around, n) for n in names if (*around, n) not in self.keys]
        self.keys.update(free[:1])
        return free[0] if free else None


def _split(
    node: Node, scopes: dict[Node, Scope], paths: set[Path], layer: Path, norm: Path,
    has_bias: bool, momentum: float, epsilon: float,
) -> list[Node]:  # fmt: skip
    module = node.attrs["module"]
    assert isinstance(module, Module)
    weight, bias = node.inputs[-2:]
    assert bias is not None and bias.tensor is not None and node.outputs[0].dtype is not None
    scope = scopes[node]
    count = bias.tensor.size
    between = Value(f"{node.outputs[0].name}.folded", node.outputs[0].dtype, node.outputs[0].shape)
    dtype = bias.tensor.dtype.numpy
    options = {**module.options} if has_bias else {**module.options, "bias": False}
    ordered = {k: options[k] for k in (*(o for o in options if o != "dtype"), "dtype")
               if k in options}  # fmt: skip
    names = module.parameters if has_bias else ("weight",)
    zeros = _fill(".".join((*layer, "bias")), np.zeros(count, dtype))
    arrays = (weight, zeros) if has_bias else (weight,)
    before = replace(
        node, inputs=(*node.inputs[:-2], *arrays), outputs=(between,),
        attrs={**node.attrs, "module": Module(module.args, MappingProxyType(ordered), names)},
    )  # fmt: skip
    settings = {"eps": None if epsilon == EPSILON else epsilon,
                "momentum": None if momentum == MOMENTUM else momentum,
                "dtype": options.get("dtype")}  # fmt: skip
    listed = MappingProxyType({k: v for k, v in settings.items() if v is not None})
    names = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    plain_norm = Module((count,), listed, names)
    prefix = ".".join(norm)
    statistics = (
        _fill(f"{prefix}.weight", np.ones(count, dtype)), bias,
        _fill(f"{prefix}.running_mean", np.zeros(count, dtype)),
        _fill(f"{prefix}.running_var", np.full(count, 1 - epsilon, dtype)),
        _fill(f"{prefix}.num_batches_tracked", np.zeros((), np.int64)),
    )  # fmt: skip
    after = Node(
        f"nn.BatchNorm{AXES[node.op]}d", (between, *statistics), node.outputs,
        {"args": (Slot(0),), "module": plain_norm}, "torch", sources=node.sources,
    )  # fmt: skip
    # The arrays tell where the layer was, the scope is that of the normalization or the layer.
    chain = tuple(m for m in scope.modules if m not in (layer, norm))
    around = [layer[:end] for end in range(1, len(layer)) if layer[:end] in paths]
    scopes[before] = Scope((*dict.fromkeys((*chain, *around)), layer), scope.classes)
    scopes[after] = Scope((*chain, norm), scope.classes)
    return [before, after]


def _fill(name: str, array: np.ndarray) -> Value:  # type: ignore[type-arg]
    """An array of the checkpoint whose contents are not in the file."""
    tensor = Tensor.of(array)
    value = Value(name, tensor.dtype, tensor.shape, tensor)
    value.name_is_original = array.ndim > 0
    return value
