"""Shrink a program that differs: cut it off above and below, and drop what is not needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from .evaluate import run_steps
from .program import Body, Program, Step, is_fed, names_read

Fails = Callable[[Program], bool]
ROUNDS = 6


def shrink(program: Program, output: str, fails: Fails) -> Program:
    """A small program that fails as ``program`` does; ``output`` is the value that differs."""
    if output:
        alone = prune(replace(program, outputs=[output]))
        program = alone if fails(alone) else program
    for _ in range(ROUNDS):
        before = program
        for candidate in candidates(program):
            if candidate.outputs and fails(candidate):
                program = candidate
                break
        if program is before:
            break
        program = repeat(program, fails)
    return program


def repeat(program: Program, fails: Fails) -> Program:
    """Take every candidate that fails, until none does."""
    for _ in range(200):
        smaller = next((c for c in candidates(program) if c.outputs and fails(c)), None)
        if smaller is None:
            return program
        program = smaller
    return program


def candidates(program: Program) -> Iterator[Program]:
    """Smaller programs, the most smaller ones first."""
    if len(program.data) > 1:
        for one in program.data:
            fixed = {n: np.shape(one[n]) for n in program.dims}
            yield replace(program, data=[one], dims=fixed)
    for at in reversed(range(len(program.steps))):
        yield cut_above(program, at)
    if len(program.outputs) > 1:
        yield from (prune(replace(program, outputs=[n])) for n in program.outputs)
    for at, step in enumerate(program.steps):
        yield from smaller_steps(program, at, step)
    if len(program.data) == 1:
        yield from smaller_leaves(program)


def prune(program: Program) -> Program:
    """Without what no output depends on."""
    needed, steps = set(program.outputs), []
    for step in reversed(program.steps):
        if needed & set(step.outputs):
            needed |= names_read(step)
            steps.append(step)
    return replace(
        program,
        steps=steps[::-1],
        dims={n: d for n, d in program.dims.items() if n in needed},
        constants={n: a for n, a in program.constants.items() if n in needed},
    )


def cut_above(program: Program, at: int) -> Program:
    """What a step computes becomes an input."""
    step, values = program.steps[at], program.data[0]
    if set(step.outputs) & set(program.outputs) or any(
        isinstance(values[n], list) for n in step.outputs if n
    ):
        return replace(program, outputs=[])
    dims, constants = dict(program.dims), dict(program.constants)
    for name in filter(None, step.outputs):
        if is_fed(values[name]) and values[name].dtype != object:
            shapes = {np.shape(one[name]) for one in program.data}
            if len(shapes) > 1:
                return replace(program, outputs=[])
            dims[name] = shapes.pop()
        else:
            constants[name] = values[name]
    steps = [*program.steps[:at], *program.steps[at + 1 :]]
    return prune(replace(program, steps=steps, dims=dims, constants=constants))


def smaller_steps(program: Program, at: int, step: Step) -> Iterator[Program]:
    """Without an attribute, or without steps of a body."""
    for name, value in step.attrs.items():
        if isinstance(value, Body):
            for i in range(len(value.steps)):
                body = replace(value, steps=value.steps[:i] + value.steps[i + 1 :])
                yield recompute_after(program, at, replace(step, attrs={**step.attrs, name: body}))
            continue
        rest = {k: v for k, v in step.attrs.items() if k != name}
        yield recompute_after(program, at, replace(step, attrs=rest))


def recompute_after(program: Program, at: int, step: Step) -> Program:
    """The program with another step, run anew; without outputs where it does not run."""
    steps = [*program.steps[:at], replace(step, session=None), *program.steps[at + 1 :]]
    return rerun(replace(program, steps=[replace(s, session=None) for s in steps]))


def rerun(program: Program) -> Program:
    """The program with its values computed anew."""
    data = []
    for old in program.data:
        values = {n: old[n] for n in program.dims} | program.constants
        bodies = {n: v for n, v in old.items() if n not in values}
        try:
            run_steps(program.steps, values, program.opset)
        except Exception:  # a candidate that does not run is none
            return replace(program, outputs=[])
        data.append({**bodies, **values})
    return replace(program, data=data)


def smaller_leaves(program: Program) -> Iterator[Program]:
    """Leaves of one element, of fewer rows, of plain numbers, and constants as inputs."""
    values = program.data[0]
    for name in (*program.dims, *program.constants):
        array = values[name]
        for axis in range(array.ndim):
            if array.shape[axis] > 1:
                for half in np.array_split(array, 2, axis):
                    yield with_leaf(program, name, half)
                    break
    for name in program.dims:
        array = values[name]
        if array.dtype.kind == "f" and not np.isin(array, (0, 1, 2)).all():
            yield with_leaf(program, name, np.ones_like(array))


def with_leaf(program: Program, name: str, array: np.ndarray) -> Program:
    """The program with other contents of a leaf."""
    dims, constants = dict(program.dims), dict(program.constants)
    if name in dims:
        dims[name] = array.shape
    else:
        constants[name] = array
    steps = [replace(s, session=None) for s in program.steps]
    values = {**program.data[0], name: array}
    return rerun(replace(program, dims=dims, constants=constants, steps=steps, data=[values]))


def show(program: Program) -> str:
    """A program as text, with the contents of small leaves."""
    lines = [f"seed {program.seed}, opset {program.opset}"]
    values = program.data[0]
    for name, dims in program.dims.items():
        lines.append(f"{name}: input {values[name].dtype}{list(dims)} = {contents(values[name])}")
    for name, array in program.constants.items():
        lines.append(f"{name}: constant {array.dtype}{list(array.shape)} = {contents(array)}")
    lines += show_steps(program.steps, "")
    return "\n".join([*lines, f"outputs: {', '.join(program.outputs)}"])


def show_steps(steps: list[Step], indent: str) -> Iterator[str]:
    """The steps as text."""
    for step in steps:
        attrs = {k: v for k, v in step.attrs.items() if not isinstance(v, Body)}
        inputs = ", ".join(n or "–" for n in step.inputs)
        yield f"{indent}{', '.join(step.outputs)} = {step.op}({inputs}) {attrs or ''}".rstrip()
        for name, body in step.bodies.items():
            yield f"{indent}  {name}({', '.join(body.inputs)}):"
            for constant, array in body.constants.items():
                yield f"{indent}    {constant} = {array.dtype}{list(array.shape)} {contents(array)}"
            yield from show_steps(body.steps, indent + "    ")
            yield f"{indent}    return {', '.join(body.outputs)}"


def contents(array: np.ndarray) -> str:
    """The elements of a small array."""
    return str(array.tolist()) if array.size <= 24 else "…"
