"""PyTorch and torchvision, whose exporters the latency benchmark compares with.

    python benchmarks/torch_live.py FOLDER

makes an environment with them for processors, from an index that pip is configured with
(``PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu``). ``$SERDE_TORCH`` names the folder.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
from testing.consumers.consumers_live import obstacle
from testing.live_worker import install, make

VARIABLE, MAKER = "SERDE_TORCH", "benchmarks/torch_live.py"
NEEDS = ["torch==2.14.1+cpu", "torchvision==0.29.1+cpu", "onnx>=1.23", "onnxscript", "numpy"]

if __name__ == "__main__":
    chosen = Path(sys.argv[1]).resolve()
    sys.exit(make(chosen, " ".join(NEEDS), obstacle, lambda folder: install(folder, NEEDS)))
