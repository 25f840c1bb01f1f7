"""Convert the digits network and print its accuracy before and after."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime

import serde

HERE = Path(__file__).parent


def accuracy(scores: np.ndarray, labels: np.ndarray) -> float:
    """The share of samples whose highest score is at their label, in percent."""
    return 100 * float((scores.argmax(axis=1) == labels).mean())


def main() -> None:
    """Write digits.onnx beside the sources and compare it with what MXNet computed."""
    test = dict(np.load(HERE / "test.npz"))
    report = serde.convert(HERE, HERE / "digits.onnx", inputs={"data": ("N", 1, 8, 8)})
    session = onnxruntime.InferenceSession(report.files[0])
    (scores,) = session.run(None, {"data": test["data"]})
    print(f"converted {HERE.name} to {Path(report.target).name}")
    print(f"accuracy in MXNet:        {accuracy(test['expected'], test['labels']):.2f} %")
    print(f"accuracy in ONNX Runtime: {accuracy(scores, test['labels']):.2f} %")
    print(f"largest difference:       {np.abs(scores - test['expected']).max():.1e}")


if __name__ == "__main__":
    main()
