"""Send a program every way, and say what became of it in each."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from serde.errors import SerdeError, Unconvertible

from .compare import compare
from .directions import DIRECTIONS, FILES, CannotRun, NotRun, Trip, is_narrow, start
from .evaluate import session_of
from .generator import Generator
from .known import find_known
from .makers import all_makers, tensor_makers
from .program import Program, make_model

LENGTHS = (1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 12, 20)
FEW = LENGTHS[:7]  # nodes, of which no other hides what a consumer gets wrong


@dataclass
class Outcome:
    """What became of a program in a direction: the kind, the output, and how it differs."""

    direction: str
    kind: str
    output: str = ""
    why: str = ""


def generate(seed: int, directions: Iterable[str] = ()) -> Program:
    """The program of a seed, one of a few common nodes if it is sent to consumers alone."""
    g = Generator(seed)
    if is_narrow(directions):
        g.narrow(only_floats=set(directions) == {"ncnn"})
        g.grow(tensor_makers(), g.choice(FEW))
        return g.finish()
    g.grow(all_makers(), g.choice(LENGTHS))
    return g.finish()


def reason(error: SerdeError) -> str:
    """A refusal in one line, without names."""
    if isinstance(error, Unconvertible):
        return "; ".join(dict.fromkeys(f"{p.op}: {p.reason}" for p in error.problems))
    return str(error)


def send(
    program: Program, directions: Iterable[str], begin: Callable[[str], object] = bool
) -> Iterator[Outcome]:
    """What becomes of a program in each of some directions; ``begin`` hears of each before."""
    try:
        trip = start(program, make_model(program))
    except SerdeError as error:
        yield from (Outcome(d, "refused", "", reason(error)) for d in directions)
        return
    except Exception as error:  # which reading is not to raise
        yield Outcome("reading", "differs", "", f"{type(error).__name__}: {error}")
        return
    try:
        for direction in directions:
            begin(direction)
            yield from outcome_of(trip, direction)
    finally:
        shutil.rmtree(trip.folder)


def runs_otherwise(program: Program, output: str) -> bool:
    """Whether ONNX Runtime computes something else of the source's own model in one run."""
    model = make_model(program)
    try:
        session = session_of(model)
        for values in program.data:
            results = dict(
                zip(program.outputs, session.run(None, program.feeds(values)), strict=True)
            )
            if compare(program, values, results)[:2] == ("differs", output):
                return True
    except Exception:  # it has no kernel for what onnx.reference computes
        return False
    return False


def is_right_by_node(trip: Trip, direction: str) -> bool:
    """Whether the result is right where its nodes run one by one."""
    trip.by_node = True
    try:
        every = zip(trip.program.data, DIRECTIONS[direction](trip), strict=True)
        return all(compare(trip.program, values, got)[0] != "differs" for values, got in every)
    except Exception:  # a node alone has no kernel
        return False
    finally:
        trip.by_node = False


def outcome_of(trip: Trip, direction: str) -> Iterator[Outcome]:
    """What becomes of a program in one direction; nothing where it does not go there."""
    count, unstable = 0, ""
    try:
        for results in DIRECTIONS[direction](trip):
            kind, output, how = compare(trip.program, trip.program.data[count], results)
            count += 1
            if kind == "differs":
                yield judge(trip, direction, output, how)
                return
            unstable = unstable or (how if kind == "unstable" else "")
    except SerdeError as error:
        yield Outcome(direction, "refused", "", reason(error))
        return
    except NotRun as error:
        yield Outcome(direction, "not run", "", str(error))
        return
    except CannotRun as error:
        yield judge(trip, direction, "", f"cannot run: {error}")
        return
    except Exception as error:  # whatever serde raises but a refusal
        yield Outcome(direction, "differs", "", f"{type(error).__name__}: {error}")
        return
    if count:
        yield Outcome(direction, "unstable" if unstable else "right", "", unstable)


def judge(trip: Trip, direction: str, output: str, how: str) -> Outcome:
    """A difference, or one that is a runtime's own."""
    known = find_known(trip.program, direction, how)
    if known is None and output and runs_otherwise(trip.program, output):
        known = "ONNX Runtime computes something else of the source itself in one run"
    if known is None and output and direction in FILES and is_right_by_node(trip, direction):
        known = "ONNX Runtime computes something else of the result in one run than node by node"
    if known is None:
        return Outcome(direction, "differs", output, how)
    return Outcome(direction, "known", output, known)
