"""Random numbers in written modules: drawn anew, of the distribution that the node tells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import serde
from serde.bridges.torch import TorchWorker
from tests.torch.torch_live import why_not

HEAD = '<ir_version: 8, opset_import: ["": 17]>\n'
# Nodes, with the mean and the standard deviation of what they draw.
DRAWS = {
    "RandomUniform<shape = [40, 50], low = 2.0, high = 5.0, dtype = 1>()": (3.5, 3 / 12**0.5),
    "RandomUniformLike<low = -1.0, high = 1.0>(x)": (0, 2 / 12**0.5),
    "RandomNormal<shape = [40, 50], mean = 2.0, scale = 1.5, dtype = 11>()": (2, 1.5),
    "RandomNormalLike<mean = -3.0, scale = 0.5, seed = 1.0>(x)": (-3, 0.5),
    "RandomNormalLike<dtype = 10>(x)": (0, 1),
    "Multinomial<sample_size = 50, dtype = 7>(logits)": (0.75, 0.75**0.5 / 2),
}
TYPES = {1: np.float32, 7: np.int64, 10: np.float16, 11: np.float64}

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")


@pytest.fixture(scope="module")
def worker() -> TorchWorker:
    return TorchWorker()


@pytest.mark.parametrize("node", DRAWS)
def test_numbers_have_the_distribution_of_the_node(node: str, worker, tmp_path: Path) -> None:
    dtype = next((n for n in TYPES if f"dtype = {n}>" in node), 1)
    model = onnx.parser.parse_model(
        HEAD
        + f"g (float[40,50] x, float[40,2] logits) => (double y) {{ r = {node} y = Cast<to = 11>(r) }}"
    )
    serde.convert(model, tmp_path / "n.py")
    x, logits = np.ones((40, 50), np.float32), np.log(np.full((40, 2), (0.25, 0.75), np.float32))
    first, second = (worker.run(str(tmp_path / "n.py"), [x, logits])[0] for _ in range(2))
    assert first.shape == (40, 50) and not np.array_equal(first, second)
    assert np.array_equal(first, first.astype(TYPES[dtype]))  # of no finer type
    mean, deviation = DRAWS[node]
    assert abs(first.mean() - mean) < 0.1 and abs(first.std() / deviation - 1) < 0.1
