"""Random changes to ONNX's node tests: run as they are, and by serde in other words.

    python -m conformance.mutations.onnx --to 7,11,13,17 [--seed N] [--each N] [WORD …]
    python -m conformance.mutations.onnx --to mxnet [--seed N] [--each N] [WORD …]

A test is given other numbers, shapes and attributes. What ONNX Runtime does not take is passed
over; else its results are what the model lowered to one of the opsets, or written for a framework,
is to give. What serde refuses is counted, and so is what onnx.reference takes serde's side of;
results that differ, and errors that are no refusals, are printed.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import onnx

from conformance.mutations.mutating import FLOATS, INTEGERS, other_sizes, renewed, reshaped, sweep
from conformance.node_target import Target
from conformance.node_tests import TARGETS, target_of
from conformance.node_tests import outcome as in_framework
from serde.errors import SerdeError
from tests.node_cases import (
    RANDOM,
    Case,
    _attempt,
    _for_onnxruntime,
    _onnxruntime,
    _reference,
    all_cases,
    converted,
    difference,
    frozen,
    results,
)

MOST = 5000  # elements of a result: attributes may ask for huge ones
ATTRIBUTE = onnx.AttributeProto
FLAGS = (
    "keepdims ceil_mode count_include_pad exclusive reverse largest sorted select_last_index "
    "align_corners storage_order center_point_box transA transB noop_with_empty_axes "
    "exclude_outside antialias linear_before_reset input_forget is_causal onesided saturate "
    "periodic interleaved training_mode allowzero across_channels batch_index upper "
    "detect_negative detect_positive fmod layout "
).split()


class Change:
    """A node test with other inputs and attributes, and a name that tells them."""

    def __init__(self, case: Case, rng: random.Random) -> None:
        self.model = onnx.ModelProto()
        self.model.CopyFrom(case.model)
        self.feeds = list(case.data[0][0])
        self.case = case
        for _ in range(rng.choice((1, 1, 2, 3))):
            rng.choice((self.numbers, self.shape, self.attribute, self.attribute))(rng)
        for value, x in zip(self.model.graph.input, self.feeds, strict=True):
            value.CopyFrom(typed(value, x))
        for value in self.model.graph.output:
            if value.type.HasField("tensor_type"):
                value.type.tensor_type.ClearField("shape")

    def numbers(self, rng: random.Random) -> None:
        """Other numbers in the same ranges."""
        self.feeds = [renewed(x, rng) if isinstance(x, np.ndarray) else x for x in self.feeds]

    def shape(self, rng: random.Random) -> None:
        """Another shape for all inputs of one shape."""
        arrays = [x for x in self.feeds if isinstance(x, np.ndarray)]
        if not arrays:
            return
        old = rng.choice(arrays).shape
        new = other_sizes(old, rng)
        self.feeds = [
            reshaped(x, new) if isinstance(x, np.ndarray) and x.shape == old else x
            for x in self.feeds
        ]

    def attribute(self, rng: random.Random) -> None:
        """Another value for an attribute of a node, or none."""
        node = rng.choice(self.model.graph.node)
        known = attributes(node.op_type, node.domain)
        if not known:
            return
        name = rng.choice(sorted(known))
        now = next((a for a in node.attribute if a.name == name), None)
        if now is not None and rng.random() < 0.2:
            node.attribute.remove(now)
            return
        value = rng.choice((0, 1)) if name in FLAGS else some(known[name], now, rng)
        if value is None:
            return
        if now is not None:
            node.attribute.remove(now)
        node.attribute.append(onnx.helper.make_attribute(name, value))

    def __str__(self) -> str:
        nodes = (
            f"{n.op_type}({', '.join(f'{a.name}={shown(a)}' for a in n.attribute)})"
            for n in self.model.graph.node[:4]
        )
        shapes = (
            f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else "…" for x in self.feeds
        )
        return f"{self.case.name} {' '.join(nodes)} {' '.join(shapes)}"


def shown(attribute: onnx.AttributeProto) -> str:
    """The value of an attribute, as text."""
    if attribute.type in (ATTRIBUTE.GRAPH, ATTRIBUTE.TENSOR):
        return "…"
    return str(onnx.helper.get_attribute_value(attribute))


def typed(value: onnx.ValueInfoProto, x: Any) -> onnx.ValueInfoProto:
    """The declaration of an input, with the shape it has now."""
    if not isinstance(x, np.ndarray) or not value.type.HasField("tensor_type"):
        return value
    kind = value.type.tensor_type.elem_type
    return onnx.helper.make_tensor_value_info(value.name, kind, x.shape)


@cache
def spoken() -> dict[tuple[str, str], list[bytes]]:
    """The texts that attributes have in the node tests, by operator and name."""
    found: dict[tuple[str, str], list[bytes]] = defaultdict(list)
    for case in all_cases():
        for node in case.model.graph.node:
            for a in node.attribute:
                if a.type == ATTRIBUTE.STRING and a.s not in found[node.op_type, a.name]:
                    found[node.op_type, a.name].append(a.s)
    return found


def attributes(op: str, domain: str) -> dict[str, Any]:
    """The attributes an operator may have that are numbers or one of a few texts."""
    try:
        schema = onnx.defs.get_schema(op, domain=domain)
    except onnx.defs.SchemaError:
        return {}
    kinds = onnx.defs.OpSchema.AttrType
    found: dict[str, Any] = {}
    for name, about in schema.attributes.items():
        if about.type in (kinds.INT, kinds.FLOAT, kinds.INTS, kinds.FLOATS):
            found[name] = about.type.name
        elif about.type == kinds.STRING and spoken()[op, name]:
            found[name] = spoken()[op, name]
    return found


def some(kind: Any, now: onnx.AttributeProto | None, rng: random.Random) -> Any:
    """A value for an attribute."""
    if isinstance(kind, list):
        return rng.choice(kind)
    if kind == "INT":
        return rng.choice(INTEGERS)
    if kind == "FLOAT":
        return rng.choice(FLOATS)
    pool: Sequence[Any] = INTEGERS if kind == "INTS" else FLOATS
    values = list(onnx.helper.get_attribute_value(now)) if now is not None else []
    if not values:
        return None
    values[rng.randrange(len(values))] = rng.choice(pool)
    return values


def outcome(change: Change, given: argparse.Namespace) -> tuple[str, str]:
    """``rejected`` by ONNX Runtime, ``refused``, ``right``, ``wrong`` or ``error``, and why."""
    names = [i.name for i in change.model.graph.input]
    fit = _for_onnxruntime(change.model)
    if fit is None:
        return "rejected", "a newer opset"
    feeds = dict(zip(names, change.feeds, strict=True))
    expected = _attempt(_onnxruntime, fit, feeds)
    if isinstance(expected, Exception):
        return "rejected", str(expected)[:80]
    if sum(y.size for y in expected if isinstance(y, np.ndarray)) > MOST:
        return "rejected", "too large"
    case = Case(change.case.name, change.model, [(change.feeds, expected)], 1e-3, 1e-5)
    held = frozen(case) or case
    if given.to in TARGETS:
        return by_target(target(given.to), held, lambda: _attempt(_reference, case.model, feeds))
    rng = random.Random(str(change))
    opset = int(rng.choice(given.to.split(",")))
    return at_opset(
        rng.choice((case, held)), opset, lambda: _attempt(_reference, case.model, feeds)
    )


@cache
def target(name: str) -> Target:
    """The framework of that name, made once."""
    return target_of(name)


def at_opset(case: Case, opset: int, referred: Callable[[], Any]) -> tuple[str, str]:
    """What becomes of a model lowered to an opset; ``referred`` tells what onnx.reference makes of
    the model itself.
    """
    try:
        model = converted(case.model, opset)
    except SerdeError as error:
        return "refused", str(error)
    except Exception as error:  # which no conversion is to raise
        return "error", f"{opset}: {type(error).__name__}: {error}"
    feeds, wanted = case.data[0]
    said, other = [], None
    for runtime, got in results(model, feeds):
        if isinstance(got, Exception):
            said.append(f"{runtime} cannot run it: {str(got)[:300]}")
        elif (how := difference(case, wanted, got)) is None:
            return "right", ""
        else:
            other = referred() if other is None else other
            if not isinstance(other, Exception) and difference(case, other, got) is None:
                return "disputed", how
            said.append(f"{runtime}: {how}")
    return "wrong", f"{opset}: {'; '.join(said)}\n{onnx.printer.to_text(model)[:1500]}"


def by_target(framework: Target, case: Case, referred: Callable[[], Any]) -> tuple[str, str]:
    """What becomes of a model in a framework."""
    kind, why = in_framework(framework, case, "ours")
    if kind == "wrong":
        other = referred()
        instead = replace(case, data=[(case.data[0][0], other)])
        if (
            not isinstance(other, Exception)
            and in_framework(framework, instead, "ours")[0] == "right"
        ):
            return "disputed", why
    return ("rejected" if kind == "not run" else kind), why


def everything(given: argparse.Namespace) -> Iterator[tuple[str, Change]]:
    """The changed tests, each with a name."""
    for case in all_cases():
        plain = len(case.data) == 1 and not any(w in case.name for w in RANDOM)
        plain &= len(case.model.graph.input) == len(case.data[0][0])
        if not plain or (given.words and not any(w in case.name for w in given.words)):
            continue
        for turn in range(given.each):
            yield (
                f"{case.name}.{turn}",
                Change(case, random.Random(f"{given.seed} {case.name} {turn}")),
            )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("words", nargs="*", metavar="WORD", help="of test names")
    options.add_argument("--to", default="7,9,11,13,17,21", help="opsets, or a framework")
    sys.exit(sweep("ONNX's operators, to", options, everything, outcome))
