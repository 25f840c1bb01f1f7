"""Random changes to the cases of Relay's reading rules, each run by TVM and by serde.

A case is given other numbers in its expression, other shapes and other contents. What TVM does not
take is passed over.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from serde.errors import SerdeError
from serde.formats.onnx.writer import to_proto
from serde.formats.relay.json.reader import parse_json
from serde.formats.relay.to_ir import module_graph, to_ir
from serde.legalize.convert import lower_to
from serde.passes import tidy
from testing.node_cases import results
from testing.relay.ops.cases import Case
from testing.relay.ops.table import CASES
from testing.relay.running import assert_equal, fed_and_given
from testing.relay.tvm_live import ask

from . import FLOATS, INTEGERS, SIZES, Array, Mutations

OPSET = 17
MOST = 20000  # elements of a result
# What may be another value: numbers and truths that stand by themselves.
LITERAL = re.compile(r"(?<![\w.\"'])(-?\d+\.\d+|-?\d+|True|False)(?![\w.\"'])")


@dataclass(frozen=True)
class Change:
    """A case with another expression or other inputs; its name seeds their contents."""

    name: str
    expression: str
    inputs: tuple[str, ...]
    rows: int | None  # of the first output, behind which is what was in memory

    def __str__(self) -> str:
        return f"{self.name}: {self.expression} of {' '.join(self.inputs)}"


def mutate(name: str, case: Case, rng: random.Random) -> Change:
    """The case with other contents, and up to three other numbers or sizes."""
    expression, inputs = case.expression, list(case.inputs)
    for _ in range(rng.randrange(4)):
        matches = list(LITERAL.finditer(expression))
        if matches and rng.random() < 0.7:
            at = rng.choice(matches)
            expression = expression[: at.start()] + other(at.group(), rng) + expression[at.end() :]
        elif inputs:
            at_input = rng.randrange(len(inputs))
            inputs[at_input] = resize(inputs[at_input], rng)
    return Change(name, expression, tuple(inputs), case.rows)


def other(literal: str, rng: random.Random) -> str:
    """Another literal of the same kind."""
    if literal in ("True", "False"):
        return "False" if literal == "True" else "True"
    return str(rng.choice(FLOATS if "." in literal else INTEGERS))


def resize(spec: str, rng: random.Random) -> str:
    """The specification of an input with another size."""
    dims, *rest = spec.split(":")
    if not dims or not dims[0].isdigit():
        return spec
    sizes = dims.split(",")
    sizes[rng.randrange(len(sizes))] = str(rng.choice(SIZES))
    return ":".join([",".join(sizes), *rest])


def outcome(change: Change) -> tuple[str, str]:
    """``rejected`` by TVM, ``refused``, ``right``, ``wrong`` or ``error``, and why."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "io.npz")
        try:
            forms = ask("live", change.name, change.expression, list(change.inputs), "", file)
        except Exception as error:  # what TVM's process raised
            return "rejected", str(error)[-80:]
        feeds, expected = fed_and_given(file)
    if sum(y.size for y in expected) > MOST:
        return "rejected", "too large"
    kinds = [compare_form(text, change, feeds, expected) for text in forms.values() if text]
    return next((k for k in kinds if k[0] not in ("right", "refused")), kinds[0])


def compare_form(
    text: str, change: Change, feeds: Mapping[str, Array], expected: list[Array]
) -> tuple[str, str]:
    """What becomes of one form of a module."""
    try:
        parsed = parse_json(text, change.name)
        graph = tidy(to_ir(module_graph(parsed, None, change.name)))
        model = to_proto(lower_to(graph, OPSET))
    except SerdeError as error:
        return "refused", str(error)
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"
    named = [i.name for i in model.graph.input]
    why = ""
    for runtime, got in results(model, [feeds[n] for n in named]):
        if isinstance(got, Exception):
            why += f"{runtime}: {str(got)[:300]}\n"
            continue
        try:
            assert_equal(got, expected, change.rows)
        except AssertionError as error:
            why += f"{runtime}: {error}\n"
            continue
        return "right", ""
    return "wrong", why


class RelayMutations(Mutations):
    """The cases of Relay's reading rules."""

    def originals(self) -> Mapping[str, Case]:
        return {n: case for n, case in CASES.items() if not case.slow and not case.oracle}

    def mutate(self, name: str, case: Case, rng: random.Random) -> Change:
        return mutate(f"{name}#{rng.randrange(1 << 32)}", case, rng)

    def outcome(self, change: Change) -> tuple[str, str]:
        return outcome(change)
