"""Random changes to the cases of MXNet's reading rules, each run by MXNet and by serde.

    python -m benchmarks.mxnet_mutations [--seed N] [--each N] [OPERATOR …]

A case is given other numbers, shapes, element types and attributes, of the types MXNet's registry
tells. What MXNet does not take is passed over. What serde refuses is counted; results that differ,
and errors that are no refusals, are printed. Runs in a process of its own, which begins anew behind
what ends it.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from serde.errors import SerdeError
from serde.opset import lower_to
from tests.mxnet.cases import Case, _compare, _graph, _namings, _run, _symbol_json
from tests.mxnet.rewriting import every_case

REGISTRY = Path(__file__).parents[1] / "tests" / "data" / "mxnet_registry.json"
OPSET = 17
INTEGERS = (-3, -2, -1, 0, 1, 2, 3, 4, 7)
FLOATS = (-2.0, -1.0, -0.5, 0.0, 1e-3, 0.3, 0.5, 1.0, 2.0, 3.0, 10.0)
TYPES = ("float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool")
MOST = 5000  # elements of a result: attributes may ask for huge ones
SECONDS = 20  # that a change may take


def changed(case: Case, about: Mapping[str, str], rng: random.Random) -> Case:
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
    return case.but(inputs=tuple(renewed(x, rng) for x in case.inputs), printed="")


def renewed(x: np.ndarray[Any, Any], rng: random.Random) -> np.ndarray[Any, Any]:
    generator = np.random.default_rng(rng.randrange(2**32))
    if not x.size or x.dtype == bool:
        return generator.integers(0, 2, x.shape).astype(x.dtype)
    low, high = float(np.min(x)), float(np.max(x))
    if not (np.isfinite(low) and np.isfinite(high)):
        return x
    if x.dtype.kind != "f" or (x == np.round(x)).all():
        return generator.integers(int(low), int(high) + 1, x.shape).astype(x.dtype)
    y = generator.uniform(low, high, x.shape)
    return (np.round(y * 4) / 4 if rng.random() < 0.3 and low < 0 < high else y).astype(x.dtype)


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
    sizes = (1, 1, 2, 3, 4, 5, 7)
    new = list(old) if rng.random() < 0.6 else [1] * rng.randrange(1, 6)
    for axis in range(len(new)):
        if rng.random() < 0.5 or new != list(old):
            new[axis] = rng.choice(sizes)
    inputs = tuple(reshaped(x, new) if x.shape == old else x for x in case.inputs)
    return case.but(inputs=inputs, printed="")


def reshaped(x: np.ndarray[Any, Any], shape: Sequence[int]) -> np.ndarray[Any, Any]:
    return np.resize(x, shape) if x.size else np.zeros(shape, x.dtype)


def outcome(case: Case) -> tuple[str, str]:
    """``rejected`` by MXNet, ``refused``, ``right``, ``wrong`` or ``error``, and why."""
    try:
        expected = case.oracle(case)
    except Exception as error:  # MXNet raises what it likes
        return "rejected", str(error)[:80]
    if sum(y.size for y in expected) > MOST:
        return "rejected", "too large"
    by_runtime = True
    try:
        text = _symbol_json(case, len(expected))
        for naming in {"static", _namings(case)[-1]}:
            graph = lower_to(_graph(text, case, naming), OPSET)
            got, by_runtime = _run(graph, case.but(gap="any"))
            _compare(case, got, expected, naming)
    except SerdeError as error:
        return "refused", str(error)
    except AssertionError as error:
        if not by_runtime:
            return "no kernel", str(error)
        again = case.oracle(case)
        if any(not np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
               for a, b in zip(again, expected, strict=True)):  # fmt: skip
            return "rejected", "MXNet gives other numbers each time"
        return "wrong", str(error)
    except Exception as error:
        if "onnx/reference" in traceback.format_exc():
            return "no kernel", str(error)
        return "error", f"{type(error).__name__}: {error}"
    return "right", ""


def everything(seed: int, each: int, operators: Sequence[str]) -> Iterator[tuple[str, Case]]:
    """The changed cases, each with a name."""
    about = json.loads(REGISTRY.read_text())
    for number, case in enumerate(every_case()):
        if case.network is not None or (operators and case.op not in operators):
            continue
        known = about.get(case.op, {}).get("attributes", {})
        for turn in range(each):
            rng = random.Random(f"{seed} {number} {turn}")
            yield f"{number}.{turn}", changed(case, known, rng)


def inside(seed: int, each: int, behind: str, operators: Sequence[str]) -> None:
    """Print the outcome of each changed case behind one, which may end the process."""
    import signal

    def stop(*_: object) -> None:
        raise TimeoutError("takes too long")

    signal.signal(signal.SIGALRM, stop)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    waiting = bool(behind)
    for name, case in everything(seed, each, operators):
        if waiting:
            waiting = name != behind
            continue
        print(json.dumps(["begin", name, str(case)]), flush=True)
        signal.alarm(SECONDS)
        try:
            kind, why = outcome(case)
        except TimeoutError as error:
            kind, why = "slow", str(error)
        signal.alarm(0)
        print(json.dumps([kind, name, str(case), why[:3000]]), flush=True)


def main() -> int:
    """Run all changes, and print what is not as it should be."""
    parser = argparse.ArgumentParser(
        description=__doc__, prog="python -m benchmarks.mxnet_mutations"
    )
    parser.add_argument("operators", nargs="*", metavar="OPERATOR")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", type=int, default=3, help="changes of each case (3)")
    parser.add_argument("--inside", metavar="BEHIND", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside is not None:
        inside(given.seed, given.each, given.inside, given.operators)
        return 0
    counts: Counter[str] = Counter()
    behind, ended = "", False
    options = ["--seed", str(given.seed), "--each", str(given.each), *given.operators]
    while not ended:
        call = [sys.executable, "-m", "benchmarks.mxnet_mutations", f"--inside={behind}", *options]
        with tempfile.TemporaryFile("w+") as out:
            run = subprocess.run(call, stdout=out, stderr=subprocess.DEVNULL, check=False)
            out.seek(0)
            for line in filter(lambda text: text.startswith('["'), out):
                kind, behind, *told = json.loads(line)
                if kind == "begin":
                    continue
                counts[kind] += 1
                if kind in ("wrong", "error", "slow"):
                    print(kind, *told, sep="\n  ", flush=True)
        ended = run.returncode == 0
        counts["MXNet ended"] += not ended
    print(dict(counts))
    return 1 if counts["wrong"] + counts["error"] else 0


if __name__ == "__main__":
    sys.exit(main())
