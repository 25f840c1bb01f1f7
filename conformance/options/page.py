"""The page of what options make of the models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ..record import NOT_RUN, REFUSED, RIGHT, WRONG, Outcome
from . import FAMILIES

SHOWN = 160  # letters of a reason
HEADER = """# What options promise

Made by `python -m conformance.pages` from `python -m conformance options`. Each property is tried
on networks that are built node by node (for any number of samples, also within the bodies of `If`
and `Loop`), the small models of the onnx package and networks of MXNet: {count} in all.

* **rebatch**: each sample of a batch gives what the source computes of it alone in ONNX Runtime,
  and `--verify` says so. A refusal is *needless* if the same network, built for several samples,
  computes each alone.
* **precision**: outputs are near those of float32, with ONNX Runtime and with each operation
  rounded (onnx's evaluator), and `--verify` agrees.
* **editing**: cuts, joins, fixed inputs and sizes, new names, folded batch norms and the training
  form, beside the values that the source computes inside.
* **quantized**: what ONNX Runtime's quantizer writes, as it is and with `--dequantize`.
* **opsets**: written at an opset, read and written again; names of inputs and outputs stay.
* **parts**: partitions for the backends that come with serde, run part by part.
* **comparison**: `compare` and `verify` pass right models and no wrong ones.

*Wrong* counts other numbers, files that do not load, and options that do nothing without a word.
*Not run* are models that the runtime or the property does not take.

| property | right | refused | of them needless | wrong | not run |
|---|---:|---:|---:|---:|---:|"""


def page(*records: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """The lines of docs/results/options.md."""
    models = {name for record in records for name in record}
    yield HEADER.format(count=len(models))
    reasons: list[str] = []
    for family, record in zip(FAMILIES, records, strict=True):
        for variant in dict.fromkeys(v for row in record.values() for v in row if v):
            outcomes = {
                n: Outcome.parse(row[variant]) for n, row in record.items() if variant in row
            }
            yield _row(f"{family}: {variant}", [*outcomes.values()])
            reasons += _list_reasons(f"{family}: {variant}", outcomes)
    yield "\n## What is wrong, or refused without need\n"
    yield from reasons or ["Nothing."]
    yield ""


def is_needless(outcome: Outcome) -> bool:
    """Whether what is possible was refused."""
    return outcome.kind == REFUSED and outcome.reason.startswith("needless")


def _row(variant: str, outcomes: list[Outcome]) -> str:
    counts: Counter[Any] = Counter(o.kind for o in outcomes)
    needless = sum(map(is_needless, outcomes))
    cells = (counts[RIGHT], counts[REFUSED], needless, counts[WRONG], counts[NOT_RUN])
    return f"| {variant} | " + " | ".join(map(str, cells)) + " |"


def _list_reasons(variant: str, outcomes: Mapping[str, Outcome]) -> list[str]:
    told = {n: o for n, o in outcomes.items() if o.kind == WRONG or is_needless(o)}
    return [f"* {variant}, `{n}`: {o.kind}: {o.reason[:SHOWN]}" for n, o in told.items()]
