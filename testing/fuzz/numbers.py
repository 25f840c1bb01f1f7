"""Numbers and texts at which readers may fail."""

from __future__ import annotations

INTS = (-(2**63), -(2**31), -7, -2, -1, 0, 1, 2, 3, 5, 64, 65, 1000, 65_536, 2**31 - 1, 2**31,
        2**32, 2**53, 2**62, 2**63 - 1)  # fmt: skip
FLOATS = (float("nan"), float("inf"), float("-inf"), 0.0, -0.0, -1.0, 0.5, 1e-45, 1e38, 3e9)
TEXTS = ("", "x", "y", "N", "N*" + "9" * 30, "N*²", "a" * 300, "a" * 70_000, "../../etc/passwd",
         "/dev/zero", "model.onnx", "\0", "x\n\x1b[31m", "ai.onnx", "local", "SAME_UPPER", "VALID",
         "NOTSET", "linear", "cubic", "nearest", "ij,jk->ik", "...ij,...jk->...ik", "i" * 200)  # fmt: skip
