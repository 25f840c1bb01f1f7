"""Read a corpus of Relay modules in both forms, write them back, and say what is not as it was.

    python -m benchmarks.relay_parse CORPUS [--megabytes 50] [--report relay-reading.md]

CORPUS holds a folder a module: ``module.txt`` and ``module.json``, packed with gzip or not. Then
modules of some megabytes are made and read: code, constants, a chain of ``let``, in both forms.
"""

from __future__ import annotations

import argparse
import gzip
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from serde.errors import SerdeError
from serde.formats.relay import ast
from serde.formats.relay.json.reader import parse_json
from serde.formats.relay.json.writer import to_json
from serde.formats.relay.text.parser import parse_text
from serde.formats.relay.text.printer import print_text
from serde.formats.relay.to_ir import module_graph
from serde.ir.graph import Tensor
from testing.relay.compare import SIX_DIGITS, difference


def main() -> None:
    """Run both parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--megabytes", type=int, default=50)
    parser.add_argument("--report", type=Path)
    arguments = parser.parse_args()
    sweep(arguments.corpus)
    rows = [HEADER.format(version=platform.python_version())]
    for label, module in (
        ("code", code(arguments.megabytes)), ("constants", constants(arguments.megabytes)),
        ("a chain of 10,000 `let`", lets(10_000)),
    ):  # fmt: skip
        rows += measure(label, module)
    print("\n".join(rows))
    if arguments.report:
        arguments.report.write_text("\n".join(rows) + "\n", encoding="utf-8")


def sweep(corpus: Path) -> None:
    """Count what holds for the modules of ``corpus``, and print what does not."""
    count: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    folders = sorted(p for p in corpus.iterdir() if (p / "module.txt").exists())
    for folder in folders:
        for check, result in checks(folder, seconds):
            count[check] += result is None
            if result is not None:
                print(f"{folder.name}: {check}: {result[:200]}")
    print(f"of {len(folders)} modules:")
    for check, number in count.items():
        print(f"  {number:4} {check}")
    for what, total in seconds.items():
        print(f"  {what}: {total:.1f} s")


def checks(folder: Path, seconds: Counter[str]) -> Iterator[tuple[str, str | None]]:
    """What is checked of one module, and what is wrong with it."""
    text = (folder / "module.txt").read_text()
    packed = folder / "module.json.gz"
    json = gzip.decompress(packed.read_bytes()) if packed.exists() else (
        folder / "module.json"
    ).read_bytes()  # fmt: skip
    read: dict[str, ast.Module] = {}
    for form, parse, raw in (("text", parse_text, text), ("JSON", parse_json, json)):
        started = time.perf_counter()
        try:
            read[form] = parse(raw, str(folder))  # type: ignore[operator]
        except SerdeError as error:
            yield f"{form} is read", str(error)
            return
        seconds[f"reading {form}"] += time.perf_counter() - started
        yield f"{form} is read", None
    yield "both forms are the same", difference(read["text"], read["JSON"], SIX_DIGITS)
    alike = print_text(read["JSON"], like_tvm=True).partition("#[metadata]")[0].strip()
    same = alike == text.partition("#[metadata]")[0].strip()
    yield "JSON prints as TVM printed it", None if same else "differs"
    for form, module in read.items():
        printed = print_text(module)
        again = parse_text(printed)
        stable = print_text(again) == printed
        yield f"{form} prints stably", None if stable else "differs"
        yield f"{form} is unchanged by printing", difference(module, again)
        yield (
            f"{form} is unchanged by writing JSON",
            difference(module, parse_json(to_json(module))),
        )


HEADER = """# Reading and writing Relay

Made by `python -m benchmarks.relay_parse`. Modules are made, written in both forms, read again and
evaluated to a graph. Seconds of the processor, Python {version}, on a busy machine. Code
is convolutions and activations with their types, as TVM prints them; real modules have up to some
hundred kilobytes of it, and what makes a file large is its constants.

| module | form | MB | operators | writing, s | reading, s | evaluating, s |
|---|---|--:|--:|--:|--:|--:|"""
TYPE = ast.TensorType((1, 16, 112, 112), "float32")


def code(megabytes: int) -> ast.Module:
    """A chain of convolutions, about so large as JSON."""
    x, w = ast.Var("data", TYPE, type=TYPE), ast.Var("weight", TYPE, type=TYPE)
    conv, relu, expr = ast.Op("nn.conv2d"), ast.Op("nn.relu"), x
    attrs = {"padding": (1, 1, 1, 1), "channels": 16, "kernel_size": (3, 3)}
    body: ast.Expr = expr
    for _ in range(megabytes * 1000):
        own = ast.Attrs("relay.attrs.Conv2DAttrs", dict(attrs))
        body = ast.Call(conv, (body, w), own, type=TYPE)
        body = ast.Call(relu, (body,), type=TYPE)
    return ast.Module({"main": ast.Function((x, w), body, TYPE)})


def constants(megabytes: int) -> ast.Module:
    """Constants of three quarters of a megabyte each, which base64 makes one."""
    body: ast.Expr = ast.Var("data")
    params = (body,)
    for seed in range(megabytes):
        array = np.random.default_rng(seed).standard_normal((256, 768)).astype(np.float32)
        body = ast.Call(ast.Op("add"), (body, ast.Constant(Tensor.of(array))))
    return ast.Module({"main": ast.Function(params, body)})  # type: ignore[arg-type]


def lets(length: int) -> ast.Module:
    """Variables bound one after the other."""
    x = ast.Var("data", TYPE, type=TYPE)
    names = [ast.Var(f"x{at}", type=TYPE) for at in range(length)]
    body: ast.Expr = names[-1]
    for at in reversed(range(length)):
        read = names[at - 1] if at else x
        body = ast.Let(names[at], ast.Call(ast.Op("tanh"), (read,), type=TYPE), body)
    return ast.Module({"main": ast.Function((x,), body, TYPE)})


def measure(label: str, module: ast.Module) -> Iterator[str]:
    """A row for each form: how long writing, reading and evaluating take."""
    for form, write, parse in (("text", print_text, parse_text), ("JSON", to_json, parse_json)):
        text, writing = time_call(write, module)
        tree, reading = time_call(parse, text)
        graph, evaluating = time_call(module_graph, tree)
        seconds = f"{writing:.2f} | {reading:.2f} | {evaluating:.2f}"
        yield f"| {label} | {form} | {len(text) / 1e6:.1f} | {len(graph.nodes):,} | {seconds} |"


def time_call(do: Callable[..., Any], argument: Any) -> tuple[Any, float]:
    """What ``do`` gives, and the processor's seconds it took."""
    started = time.process_time()
    result = do(argument)
    return result, time.process_time() - started


if __name__ == "__main__":
    main()
