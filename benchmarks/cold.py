"""Time the first conversion of a process.

``python benchmarks/cold.py SMALL SOURCE TARGET OPTIONS``

OPTIONS is JSON, ``{}`` for none; of ``onnx`` alone, onnx's version converter takes the place of
serde. Prints JSON: processor seconds, and by how many MB (2**20 bytes) the peak memory grew. SMALL,
a model of a few other layers, goes through first, so that what is imported is not counted.
"""

from __future__ import annotations

import json
import sys
import time
from resource import RUSAGE_SELF, getrusage


def peak() -> float:
    """The peak memory so far."""
    return getrusage(RUSAGE_SELF).ru_maxrss / 1024


def convert_by_serde(source: str, target: str, options: dict) -> None:
    """Convert as users do."""
    from serde import api

    api.convert(source, target, **options)


def convert_by_onnx(source: str, target: str, options: dict) -> None:
    """Convert to another opset with onnx's converter, which is in C++."""
    import onnx
    import onnx.version_converter

    model = onnx.version_converter.convert_version(onnx.load(source), options["onnx"])
    onnx.save(model, target)


if __name__ == "__main__":
    small, model, into, text = sys.argv[1:]
    chosen = json.loads(text)
    convert = convert_by_onnx if "onnx" in chosen else convert_by_serde
    convert(small, into, chosen)
    memory, start = peak(), time.process_time()
    convert(model, into, chosen)
    print(json.dumps([time.process_time() - start, peak() - memory]))
