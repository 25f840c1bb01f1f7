"""What becomes of operators that only train, in a graph that only infers."""

from __future__ import annotations

PASSES = "passes its operand on"
INFERENCE_FORMS = {  # operator: what it becomes
    "BlockGrad": PASSES,
    "Dropout": PASSES,
    "IdentityAttachKLSparseReg": f"{PASSES}, without the penalty",
    "LinearRegressionOutput": f"{PASSES}, without the label",
    "LogisticRegressionOutput": "the sigmoid of its operand, without the label",
    "MAERegressionOutput": f"{PASSES}, without the label",
    "MakeLoss": PASSES,
    "SVMOutput": f"{PASSES}, without the label",
    "SoftmaxOutput": "the softmax of its operand, without the label",
    "_contrib_gradientmultiplier": PASSES,
    "make_loss": PASSES,
}
