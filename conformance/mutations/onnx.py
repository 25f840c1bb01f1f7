"""Random changes to ONNX's node tests: run as they are, and by serde in other words.

A test is given other numbers, shapes and attributes. What ONNX Runtime does not take is passed
over; else its results are what the model lowered to one of the opsets, or written for a framework,
is to give. Where onnx.reference takes serde's side the change is disputed.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import onnx

from conformance.matrix import Target, outcomes, target_of
from conformance.onnx_nodes import read, sample_of
from conformance.record import NOT_RUN, RIGHT, WRONG, Outcome
from serde.errors import SerdeError
from testing.node_cases import (
    RANDOM,
    Case,
    _attempt,
    _reference,
    all_cases,
    convert,
    difference,
    freeze,
    onnxruntime_results,
    results,
)

from . import FLOATS, INTEGERS, Mutations, other_sizes, renew, reshape

OPSETS = (7, 11, 17)
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
            value.CopyFrom(declare(value, x))
        for value in self.model.graph.output:
            if value.type.HasField("tensor_type"):
                value.type.tensor_type.ClearField("shape")

    def numbers(self, rng: random.Random) -> None:
        """Other numbers in the same ranges."""
        self.feeds = [renew(x, rng) if isinstance(x, np.ndarray) else x for x in self.feeds]

    def shape(self, rng: random.Random) -> None:
        """Another shape for all inputs of one shape."""
        arrays = [x for x in self.feeds if isinstance(x, np.ndarray)]
        if not arrays:
            return
        old = rng.choice(arrays).shape
        new = other_sizes(old, rng)
        self.feeds = [
            reshape(x, new) if isinstance(x, np.ndarray) and x.shape == old else x
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
            f"{n.op_type}({', '.join(f'{a.name}={show(a)}' for a in n.attribute)})"
            for n in self.model.graph.node[:4]
        )
        shapes = (
            f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else "…" for x in self.feeds
        )
        return f"{self.case.name} {' '.join(nodes)} {' '.join(shapes)}"


def show(attribute: onnx.AttributeProto) -> str:
    """The value of an attribute, as text."""
    if attribute.type in (ATTRIBUTE.GRAPH, ATTRIBUTE.TENSOR):
        return "…"
    return str(onnx.helper.get_attribute_value(attribute))


def declare(value: onnx.ValueInfoProto, x: Any) -> onnx.ValueInfoProto:
    """The declaration of an input, with the shape it has now."""
    if not isinstance(x, np.ndarray) or not value.type.HasField("tensor_type"):
        return value
    kind = value.type.tensor_type.elem_type
    return onnx.helper.make_tensor_value_info(value.name, kind, x.shape)


@cache
def list_texts() -> dict[tuple[str, str], list[bytes]]:
    """The texts that attributes have in the node tests, by operator and name."""
    strings: dict[tuple[str, str], list[bytes]] = defaultdict(list)
    for case in all_cases():
        for node in case.model.graph.node:
            for a in node.attribute:
                if a.type == ATTRIBUTE.STRING and a.s not in strings[node.op_type, a.name]:
                    strings[node.op_type, a.name].append(a.s)
    return strings


def attributes(op: str, domain: str) -> dict[str, Any]:
    """The attributes an operator may have that are numbers or one of a few texts."""
    try:
        schema = onnx.defs.get_schema(op, domain=domain)
    except onnx.defs.SchemaError:
        return {}
    kinds = onnx.defs.OpSchema.AttrType
    attrs: dict[str, Any] = {}
    for name, about in schema.attributes.items():
        if about.type in (kinds.INT, kinds.FLOAT, kinds.INTS, kinds.FLOATS):
            attrs[name] = about.type.name
        elif about.type == kinds.STRING and list_texts()[op, name]:
            attrs[name] = list_texts()[op, name]
    return attrs


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


class OnnxMutations(Mutations):
    """ONNX's node tests, to an opset or to a framework."""

    @cached_property
    def framework(self) -> Target | None:
        """The framework that results are written for; None for opsets."""
        name = self.name.partition("/")[2]
        return None if name == "onnx" else target_of(name)

    @cached_property
    def tests(self) -> Mapping[str, Case]:
        """The tests with one set of data, all of it inputs."""
        return {
            c.name: c for c in all_cases()
            if len(c.data) == 1 and len(c.model.graph.input) == len(c.data[0][0])
            and not any(word in c.name for word in RANDOM)
        }  # fmt: skip

    def originals(self) -> Mapping[str, Case]:
        return self.tests

    def mutate(self, name: str, case: Case, rng: random.Random) -> Change:
        return Change(case, rng)

    def outcome(self, change: Change) -> tuple[str, str]:
        result = next(onnxruntime_results(change.model, change.feeds), None)
        if result is None:
            return "rejected", "a newer opset"
        _, expected = result
        if isinstance(expected, Exception):
            return "rejected", str(expected)[:80]
        if sum(y.size for y in expected if isinstance(y, np.ndarray)) > MOST:
            return "rejected", "too large"
        case = Case(change.case.name, change.model, [(change.feeds, expected)], 1e-3, 1e-5)
        held = freeze(case) or case
        if self.framework is not None:
            return by_target(self.framework, held, case)
        rng = random.Random(str(change))
        opset = rng.choice(OPSETS)
        return at_opset(rng.choice((case, held)), opset, case)


def run_reference(case: Case) -> Any:
    """What onnx.reference makes of a model itself."""
    names = [i.name for i in case.model.graph.input]
    return _attempt(_reference, case.model, dict(zip(names, case.data[0][0], strict=True)))


def at_opset(case: Case, opset: int, plain: Case) -> tuple[str, str]:
    """What becomes of a model lowered to an opset."""
    try:
        model = convert(case.model, opset)
    except SerdeError as error:
        return "refused", str(error)
    except Exception as error:  # which no conversion is to raise
        return "error", f"{opset}: {type(error).__name__}: {error}"
    feeds, expected = case.data[0]
    reasons, other = [], None
    for runtime, got in results(model, feeds):
        if isinstance(got, Exception):
            reasons.append(f"{runtime} cannot run it: {str(got)[:300]}")
        elif (how := difference(case, expected, got)) is None:
            return "right", ""
        else:
            other = run_reference(plain) if other is None else other
            if not isinstance(other, Exception) and difference(case, other, got) is None:
                return "disputed", how
            reasons.append(f"{runtime}: {how}")
    return "wrong", f"{opset}: {'; '.join(reasons)}\n{onnx.printer.to_text(model)[:1500]}"


def by_target(framework: Target, case: Case, plain: Case) -> tuple[str, str]:
    """What becomes of a model in a framework."""
    kind, why = in_framework(framework, case)
    if kind == WRONG and not isinstance(other := run_reference(plain), Exception):
        again = in_framework(framework, replace(case, data=[(case.data[0][0], other)]))
        return ("disputed" if again.kind == RIGHT else WRONG), why
    return ("rejected" if kind == NOT_RUN else kind), why


def in_framework(framework: Target, case: Case) -> Outcome:
    """What a framework makes of a test that serde converts for it."""
    return outcomes(lambda: sample_of(case, read(case.model)), framework)[""]
