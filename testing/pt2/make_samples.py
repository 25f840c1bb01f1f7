"""Writes ``tests/data/pt2``: small exported programs as PyTorch saves them, and their numbers.

SERDE_TORCH_CPU=FOLDER python -m testing.pt2.make_samples
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from testing.pt2.cases import Case
from testing.pt2.run import export_cases

FOLDER = Path(__file__).resolve().parents[2] / "tests/data/pt2"
NET = "nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(True), nn.MaxPool2d(2))"
NORMS = (
    "nn.Sequential(nn.LayerNorm(6, elementwise_affine=False), nn.GroupNorm(2, 8, affine=False),"
    " nn.GroupNorm(4, 8), nn.BatchNorm2d(8, affine=False), nn.InstanceNorm2d(8),"
    " nn.InstanceNorm2d(8, affine=True), nn.RMSNorm(6), nn.RMSNorm(6, elementwise_affine=False))"
)
SAMPLES: dict[str, Case] = {
    "network": ("network", "{'scores': self.a(x).flatten(1).softmax(-1)}", "f(2, 3, 8, 8)",
                {"layers": {"a": NET}, "dynamic": [[0]]}),
    "core": ("core", "self.a(x).mean((2, 3))", "f(2, 3, 8, 8)", {"layers": {"a": NET}, "core": True}),
    "training": ("training", "self.a(x)", "f(4, 3, 5)",
                 {"layers": {"a": "nn.BatchNorm1d(3)"}, "train": True}),
    "moved": ("training", "self.a(x) * 2", "f(4, 3, 5)",
              {"layers": {"a": "nn.BatchNorm1d(3)"}, "train": True, "core": True}),
    "recurrent": ("recurrent", "self.a(x)[0]", "f(2, 5, 3)",
                  {"layers": {"a": "nn.LSTM(3, 4, batch_first=True)"}}),
    "joined": ("joined", "F.linear(x, self.a.weight, torch.cat([self.b[0], torch.zeros(4), self.b[1]]))",
               "f(2, 3)", {"layers": {"a": "nn.Linear(3, 12, bias=False)",
                                      "b": "nn.ParameterList([torch.randn(4), torch.randn(4)])"}}),
    "buffers": ("buffers", "F.embedding(self.table.view(-1), self.a.weight) * self.scale"
                " + x[self.pairs[0]] * x[self.pairs[1]]", "f(3, 4)",
                {"layers": {"a": "nn.Embedding(5, 4)", "scale": "nn.Buffer(torch.tensor(2.5))",
                            "table": "nn.Buffer(torch.tensor([[3], [1], [4]]))",
                            "pairs": "nn.Buffer(torch.tensor([[0, 1, 2], [2, 2, 0]]))"}}),
    "norms": ("norms", "F.adaptive_avg_pool2d(self.a(x), 5)", "f(2, 8, 6, 6)",
              {"layers": {"a": NORMS}}),
    "projected": ("projected", "self.a(x)[0]", "f(2, 5, 3)",
                  {"layers": {"a": "nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True, proj_size=2)"}}),
    "dropouts": ("dropouts", "self.a(x)", "f(2, 3, 4, 5)",
                 {"layers": {"a": "nn.Sequential(nn.Dropout2d(0.3), nn.Dropout(0.1), nn.AlphaDropout(0.25))"}}),
    "writes": ("writes", "(lambda t: (t.view(4, 3)[1:3].mul_(2), t.t())[1])(x * 1)", "f(3, 4)", {}),
    "types": ("types", "(x.half(), x.double() * (y > 0), (x * 9).int() // 2)",
              "f(3, 4), i(4)", {}),
    "refused": ("refused", "self.a(x) + torch.rand([4])", "f(2, 3)", {"layers": {"a": "nn.Linear(3, 4)"}}),
    "leaky": ("leaky", "F.leaky_relu(x, 1.5)", "f(2, 3)", {}),
    "strided": ("strided", "x @ self.a.weight", "f(2, 3)", {"layers": {"a": "nn.Linear(4, 3)"}}),
}  # fmt: skip


def main() -> None:
    """Write all."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        names = export_cases(list(SAMPLES.values()), Path(folder))
        for name, sample in zip(names, SAMPLES, strict=True):
            for suffix in (".pt2", ".npz"):
                shutil.copy(Path(folder, name + suffix), FOLDER / (sample + suffix))


if __name__ == "__main__":
    main()
