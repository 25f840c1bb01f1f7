"""Converts a live module and an exported program, in a Python that has PyTorch.

    python tests/bridges/pt2_script.py FOLDER PATH…

writes into FOLDER; PATH are the folders that serde and what it needs are imported from. It prints
the largest difference of each file from the module, and whether the verification passed.
"""

import sys

folder, *paths = sys.argv[1:]
sys.path += paths

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

import serde  # noqa: E402


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())

    def forward(self, x, *, scale):
        return self.layers(x) * scale


torch.manual_seed(0)
module = Scaled().eval()
x, scale = torch.randn(2, 3, 8, 8), torch.randn(1)
expected = module(x, scale=scale).detach().numpy()
program = torch.export.export(module, (x,), {"scale": scale})
sources = {
    "module": (module, {"inputs": {"x": ("batch", 3, 8, 8), "scale": (1,)}}),
    "program": (program, {}),
}
for name, (source, options) in sources.items():
    report = serde.convert(source, f"{folder}/{name}.onnx", verify=True, **options)
    results = serde.run(f"{folder}/{name}.onnx", {"x": x.numpy(), "scale": scale.numpy()})
    (result,) = results.values()
    print(name, np.abs(result - expected).max() < 1e-5, report.verification.done, report.ok)
