"""Print ``docs/reference/relay-operators.md``: ``python -m testing.relay.operators > docs/reference/relay-operators.md``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from serde.formats.relay import ops, registry
from serde.formats.relay.ops.random import draws
from serde.formats.relay.ops.unsupported import REASONS
from serde.formats.relay.partial_eval.operators import TRANSPARENT
from serde.formats.relay.passes.undo_weight_transforms import PARTNERS
from serde.formats.relay.rules import reads
from testing.relay.ops.record import folder_name
from testing.relay.ops.table import CASES
from testing.relay.running import names, read_module

ARCHIVE = Path(__file__).parent / "ops/recorded.zip.xz"
EXPECTED = {folder_name(name): case for name, case in CASES.items()}  # of the archive
UNDEFINED = ("hardswish", "scatter")  # names TVM 0.17 lists, and no more
INFERENCE = {
    "nn.batch_norm": "with the statistics it is given, which are passed on as they are",
    "nn.dropout": "nothing is dropped; the mask is all ones",
    "debug": "the function of Python it would call is not called",
}
CLASSES = {
    "converted": "Converted, and compared with live TVM at opsets 11, 17 and 21, with known and "
    "unknown sizes",
    "in its inference form": "Converted to what they are in inference",
    "with its convolution": "Taken back where only a convolution reads their result, and compared "
    "as part of it",
    "converted, not compared": "Converted, but TVM has no kernel to compare with",
    "transparent": "Passed through: they say where or how a model runs",
    "random": "Random: refused, unless `--random` says what draws the numbers",
    "refused": "Refused",
    "not defined": "Listed by TVM 0.17 and defined nowhere in it",
}
PREAMBLE = """\
# Relay's operators

Made by `python -m testing.relay.operators`; a test compares it with the rules and the cases. These
are all operators of TVM 0.17's registry, each in one class. The cases of an operator are modules of
`tests/relay/ops` in which it stands; a live TVM runs each of them while the tests run.

Where numbers differ, TVM is the less precise. It adds up halves in halves, unless `out_dtype` says
otherwise, and ONNX Runtime in float32. The products of a dense layer of 4096 halves differ by up to
0.7 % of the largest result, the sum of 10,000 halves between 0 and 1 by more than half of it, and a
softmax of as many likewise. What is converted is then nearer to the exact numbers. Products with
`out_dtype="float32"` agree to 1e-4 of scale as all others do; results in halves are compared to
2e-3, with few enough terms.
"""


@cache
def cases() -> Counter[str]:
    """How many recorded cases hold each operator."""
    counts: Counter[str] = Counter()
    for name in names(ARCHIVE):
        nodes = json.loads(read_module(ARCHIVE, name).json)["nodes"]
        counts.update({n["repr_str"] for n in nodes if n["type_key"] == "Op"})
    return counts


def operators() -> list[str]:
    """The names in TVM 0.17's registry."""
    return sorted(registry.operators())


def class_of(op: str) -> tuple[str, str]:
    """The class of an operator, and what is to be said of it."""
    assert ops, "importing the families fills the table"
    reasons = {name: why for why, names in REASONS.items() for name in names.split()}
    if op in UNDEFINED:
        return "not defined", ""
    if op in TRANSPARENT:
        return "transparent", ""
    if op in PARTNERS:
        return "with its convolution", f"read by `{PARTNERS[op]}`; otherwise {reasons[op]}"
    if op in draws.rules:
        return "random", ""
    if op in reasons:
        return "refused", reasons[op]
    if op in INFERENCE:
        return "in its inference form", INFERENCE[op]
    assert op in reads.rules, op
    return ("converted" if cases()[op] else "converted, not compared"), ""


def lines() -> Iterator[str]:
    """The document."""
    yield PREAMBLE
    classes = {op: class_of(op) for op in operators()}
    yield f"| class | of {len(classes)} |"
    yield "|---|---|"
    for name, what in CLASSES.items():
        if count := sum(c == name for c, _ in classes.values()):
            yield f"| {what} | {count} |"
    for name, what in CLASSES.items():
        members = {op: why for op, (c, why) in classes.items() if c == name}
        if not members:
            continue
        yield f"\n## {what}\n"
        has_reason = any(members.values())
        yield "| operator | cases |" + (" |" if has_reason else "")
        yield "|---|---|" + ("---|" if has_reason else "")
        for op, why in members.items():
            yield f"| `{op}` | {cases()[op] or ''} |" + (f" {why} |" if has_reason else "")
    older = sorted(set(reads.rules) - set(classes) - {"if", "while"})
    yield "\n## Operators of older releases\n"
    yield "Read in files of releases that had them: " + ", ".join(f"`{op}`" for op in older) + "."


if __name__ == "__main__":
    print("\n".join(lines()))
