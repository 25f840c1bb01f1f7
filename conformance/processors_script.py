"""Run a model in ONNX Runtime: ``processors_script.py MODEL INPUTS.npz OUTPUTS.npz``.

It is run by an emulator, so it imports nothing that it does not need.
"""

import sys

import numpy as np
import onnxruntime


def main(model: str, inputs: str, outputs: str) -> None:
    """Write what the model computes of the arrays in ``inputs``."""
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
    with np.load(inputs) as arrays:
        np.savez(outputs, *session.run(None, dict(arrays)))


if __name__ == "__main__":
    main(*sys.argv[1:])
