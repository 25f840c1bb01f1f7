"""Random changes to the cases of MXNet's reading rules, each run by MXNet and by serde.

A case is given other numbers, shapes, element types and attributes, of the types MXNet's registry
tells. What MXNet does not take is passed over.
"""

from __future__ import annotations

import json
import random
import re
import traceback
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import numpy as np

from serde.errors import SerdeError
from serde.legalize.convert import lower_to
from testing.mxnet.cases import (
    REFERENCE,
    TOLERANCE,
    Case,
    _compare,
    _graph,
    _namings,
    _runs,
    _symbol_json,
    in_float32,
    live,
)
from testing.mxnet.rewriting import every_case
from testing.onnx_live import LEVELS

from . import FLOATS, INTEGERS, Array, Mutations, other_sizes, renew, reshape

REGISTRY = Path(__file__).parents[2] / "tests" / "data" / "mxnet_registry.json"
OPSET = 17
TYPES = ("float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool")
# Where MXNet is no judge, and why.
ITS_OWN = {
    "_image_flip_left_right": "leaves the middle column of an odd number unwritten",
    "_image_flip_top_bottom": "leaves the middle row of an odd number unwritten",
    "_rdiv_scalar": "divides integers by zero",
    "amp_cast": "casts what a type does not hold",
    "Pooling_v1": "has the maximum of windows behind the image be that of nothing",
    "ROIPooling": "reads images that are not there",
    "_contrib_PSROIPooling": "reads images that are not there",
    "_contrib_DeformablePSROIPooling": "reads images that are not there",
    "_contrib_RROIAlign": "reads images that are not there",
    "scatter_nd": "writes where nothing is",
    "CTCLoss": "reads labels that are not there",
    "multi_all_finite": "without init_output keeps what was in memory",
    "_unravel_index": "takes sizes below 0",
}
UNSTABLE = ("topk", "argsort")  # equals come in the order a sort happens to leave
ATOL = 2e-6  # of single numbers, where all are next to nothing
MOST = 5000  # elements of a result: attributes may ask for huge ones


def mutate(case: Case, about: Mapping[str, str], rng: random.Random) -> Case:
    """The case with one to three changes."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        ways = [other_numbers, other_type, other_shape]
        ways += [other_attribute] * 4 if about else []
        case = rng.choice(ways)(case, about, rng)
    return case


def other_attribute(case: Case, about: Mapping[str, str], rng: random.Random) -> Case:
    """Another value for an attribute, or the one it has by default."""
    name = rng.choice(sorted(about))
    attrs = dict(case.attrs)
    if name in attrs and "required" not in about[name] and rng.random() < 0.15:
        del attrs[name]
    else:
        attrs[name] = some(about[name], attrs.get(name), rng)
    return case.but(attrs=attrs, printed="")


def some(kind: str, now: str | None, rng: random.Random) -> str:
    """A value of a type as the registry spells it."""
    if kind.startswith("{"):
        return rng.choice([c.strip(" '\"") for c in kind[1 : kind.index("}")].split(",")])
    if "or None" in kind and rng.random() < 0.2:
        return "None"
    if kind.startswith("boolean"):
        return rng.choice(("True", "False"))
    if kind.startswith(("Shape", "tuple", "string")) or "tuple" in kind.split(",")[0]:
        numbers = re.findall(r"-?\d+(?:\.\d+)?|None", now or "")
        if numbers and rng.random() < 0.7:
            at = rng.randrange(len(numbers))
            numbers[at] = str(rng.choice(INTEGERS))
        else:
            numbers = [str(rng.choice(INTEGERS[2:])) for _ in range(rng.randrange(1, 4))]
        return f"({', '.join(numbers)}{',' * (len(numbers) == 1)})"
    if kind.startswith(("int", "long", "Long", "short")):
        return str(rng.choice(INTEGERS))
    if kind.startswith(("float", "double")):
        return str(rng.choice(FLOATS))
    return str(now or rng.choice(INTEGERS))


def other_numbers(case: Case, about: Mapping[str, str], rng: random.Random) -> Case:
    """Other numbers in the same ranges: floats with equals, halves and zeros among them."""
    if case.op in UNSTABLE:
        shuffled = np.random.default_rng(rng.randrange(2**32)).permutation
        inputs = [shuffled(np.arange(x.size)).reshape(x.shape).astype(x.dtype) for x in case.inputs]
        return case.but(inputs=tuple(inputs), printed="")
    return case.but(inputs=tuple(renew(x, rng) for x in case.inputs), printed="")


def other_type(case: Case, about: Mapping[str, str], rng: random.Random) -> Case:
    """Another element type, for one input or for all of one type."""
    if not case.inputs:
        return case
    old, new = rng.choice(case.inputs).dtype, rng.choice(TYPES)
    with np.errstate(all="ignore"):
        inputs = tuple(x.astype(new) if x.dtype == old else x for x in case.inputs)
    return case.but(inputs=inputs, printed="")


def other_shape(case: Case, about: Mapping[str, str], rng: random.Random) -> Case:
    """Another shape for all inputs of one shape, of any rank or of the same."""
    if not case.inputs:
        return case
    old = rng.choice(case.inputs).shape
    new = other_sizes(old, rng)
    inputs = tuple(reshape(x, new) if x.shape == old else x for x in case.inputs)
    return case.but(inputs=inputs, printed="")


def outcome(case: Case) -> tuple[str, str]:
    """``rejected`` by MXNet, ``refused``, ``right``, ``wrong`` or ``error``, and why."""
    if case.oracle is in_float32 and not any(x.dtype == "float16" for x in case.inputs):
        case = case.but(oracle=live)
    if any(x.dtype == "float16" for x in case.inputs):
        case = case.but(tolerance=TOLERANCE["float16"])  # of wider results as well
    try:
        expected = case.oracle(case)
    except Exception as error:  # MXNet raises what it likes
        return "rejected", str(error)[:80]
    if sum(y.size for y in expected) > MOST:
        return "rejected", "too large"
    by_runtime = True
    try:
        text = _symbol_json(case, len(expected))
        for naming in dict.fromkeys(("static", _namings(case)[-1])):
            graph = lower_to(_graph(text, case, naming), OPSET)
            for runtime, got in _runs(graph, case.but(gap="any"), LEVELS):
                by_runtime = runtime != REFERENCE
                if not all(map(as_near, got, expected)):
                    _compare(case, got, expected, naming)
    except SerdeError as error:
        return "refused", str(error)
    except AssertionError as error:
        if not by_runtime or "bfloat16" in str(error):
            return "no kernel", str(error)
        if case.op in ITS_OWN:
            return "MXNet's own", ITS_OWN[case.op]
        again = case.oracle(case)
        if any(not np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
               for a, b in zip(again, expected, strict=True)):  # fmt: skip
            return "rejected", "MXNet gives other numbers each time"
        return "wrong", str(error)
    except Exception as error:
        if "onnx/reference" in traceback.format_exc() or "bfloat16" in str(error):
            return "no kernel", str(error)
        return "error", f"{type(error).__name__}: {error}"
    return "right", ""


def as_near(y: Array, expected: Array) -> bool:
    """Whether numbers are the same but for next to nothing."""
    if (y.shape, y.dtype) != (expected.shape, expected.dtype) or y.dtype.kind != "f":
        return False
    return bool(np.allclose(y, expected, rtol=0, atol=ATOL, equal_nan=True))


class MXNetMutations(Mutations):
    """The cases of MXNet's reading rules, by number."""

    @cached_property
    def attributes(self) -> Mapping[str, Mapping[str, str]]:
        """The attributes of MXNet's operators and their types."""
        about = json.loads(REGISTRY.read_text(encoding="utf-8"))
        return {op: known.get("attributes", {}) for op, known in about.items()}

    @cached_property
    def by_number(self) -> Mapping[str, Case]:
        """The cases of single operators."""
        return {str(n): case for n, case in enumerate(every_case()) if case.network is None}

    def originals(self) -> Mapping[str, Case]:
        return self.by_number

    def mutate(self, name: str, case: Case, rng: random.Random) -> Case:
        return mutate(case, self.attributes.get(case.op, {}), rng)

    def outcome(self, change: Case) -> tuple[str, str]:
        return outcome(change)
