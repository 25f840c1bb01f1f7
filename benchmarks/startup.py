"""Time of a short conversion as a process: ``python -m benchmarks.startup [ROUNDS]``.

``serde convert`` of the digits example runs in turn with an interpreter that imports onnx and
NumPy. The processor's time counts, and the least of the rounds: other work on a machine adds to it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

DIGITS = Path(__file__).resolve().parents[1] / "examples" / "digits"
COMMAND = "from serde.cli.commands import main; main()"


def seconds(command: list[str]) -> float:
    """The processor's time that a command takes."""
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(rounds: int) -> None:
    """Print the least time of both, and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        imports = [sys.executable, "-c", "import onnx, numpy"]
        target = str(Path(folder) / "digits.onnx")
        convert = [sys.executable, "-c", COMMAND, "convert", str(DIGITS), "-o", target, "-q"]
        pairs = [(seconds(imports), seconds(convert)) for _ in range(rounds + 1)][1:]
    least, ours = (min(times) for times in zip(*pairs, strict=True))
    print(f"import onnx, numpy: {1000 * least:.0f} ms; serde convert: {1000 * ours:.0f} ms", end="")
    print(f"; {ours / least:.2f} times")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
