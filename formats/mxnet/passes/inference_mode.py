"""What becomes of operators that only train, in a graph that only infers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from serde.ir.graph import Node

SHOWN = 5  # names of layers in one note
PASSES = "passes its operand on"
INFERENCE_FORMS = {  # operator: what it does then
    "BlockGrad": PASSES,
    "Dropout": PASSES,
    "IdentityAttachKLSparseReg": f"{PASSES}, without the penalty",
    "LinearRegressionOutput": f"{PASSES}, without the label",
    "LogisticRegressionOutput": "becomes the sigmoid of its operand, without the label",
    "MAERegressionOutput": f"{PASSES}, without the label",
    "MakeLoss": PASSES,
    "SVMOutput": f"{PASSES}, without the label",
    "SoftmaxOutput": "becomes the softmax of its operand, without the label",
    "WarpCTC": "becomes the softmax of its operand, without the label",
    "_contrib_gradientmultiplier": PASSES,
    "make_loss": PASSES,
}


def collect_notes(nodes: Iterable[Node], training: bool = False) -> Iterator[str]:
    """What to say of the operators that became something else; Dropout stays for ``training``."""
    by_op: dict[str, list[str]] = {}
    for node in nodes:
        if node.op in INFERENCE_FORMS and not (training and node.op == "Dropout"):
            by_op.setdefault(node.op, []).append(node.name)
    for op, names in by_op.items():
        few = ", ".join(map(repr, names[:SHOWN])) + (", …" if len(names) > SHOWN else "")
        yield f"{op} ×{len(names)} ({few}) {INFERENCE_FORMS[op]}"
