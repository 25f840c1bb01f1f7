"""Run written modules on a GPU: ``gpu_script.py FOLDER RESULTS.json``, in a Python with PyTorch.

``FOLDER`` is what ``python -m conformance.gpu write`` made. A network computes and is trained for a
step on the GPU and on the processor, in float32, and on the processor in float64, which tells how
far float32 itself is off. It takes turns with the same architecture as written by hand, which has
its weights. Nothing is said of a model that the processor does not run.
"""

from __future__ import annotations

import importlib.util
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

sys.path.append(str(Path(__file__).resolve().parents[1]))
from benchmarks.torch_networks import build, copy_weights

SAMPLES = 2  # compared
BATCH = 32  # timed
RATE = 0.01
CELLS = {"lstm_ntc_2": nn.LSTM, "gru_ntc_2": nn.GRU}
DEVICE = sys.argv[3] if len(sys.argv) > 3 else "cuda"  # another one tries the script out
ROUNDS = 30
Tensors = list[torch.Tensor]


def main() -> None:
    """Run all and write what came of it."""
    folder, target = map(Path, sys.argv[1:3])
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(0)
    found: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if DEVICE == "cuda" else DEVICE,
        "torch": torch.__version__,
        "batch": BATCH,
    }
    found["networks"] = {}
    for path in sorted((folder / "networks").iterdir()):
        started = time.time()
        try:
            found["networks"][path.name] = measure_network(path)
        except Exception as problem:
            found["networks"][path.name] = {"failed": f"{type(problem).__name__}: {problem}"[:400]}
        print(path.name, f"{time.time() - started:.0f} s", found["networks"][path.name], flush=True)
        target.write_text(json.dumps(found, indent=1))
    for kind in ("nodes", "float16"):
        found[kind] = {p.name: run_files(p) for p in sorted((folder / kind).iterdir())}
        target.write_text(json.dumps(found, indent=1))
        print(kind, len(found[kind]), flush=True)


def load_module(path: Path) -> nn.Module:
    """The module of a source, with its weights."""
    spec = importlib.util.spec_from_file_location(f"written_{path.parent.name}_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    source = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(source)
    return source.load()


def fill_weights(folder: Path) -> None:
    """Draw the arrays that were left out of the file of weights: activations keep their size."""
    described = json.loads((folder / "network.json").read_text())
    with safe_open(folder / "net.safetensors", "pt") as file:
        names, metadata = list(file.keys()), file.metadata()
        state = {name: file.get_tensor(name) for name in names}
    generator = torch.Generator().manual_seed(0)
    for name, shape in described["drawn"].items():
        values = torch.randn(shape, generator=generator)
        state[name] = values * math.sqrt(2 / math.prod(shape[1:]))  # He et al. 2015
    save_file(state, folder / "net.safetensors", metadata)


def measure_network(folder: Path) -> dict[str, Any]:
    """How far the GPU's numbers are off, and how long it takes, beside the module by hand."""
    fill_weights(folder)
    described = json.loads((folder / "network.json").read_text())
    inputs = read_inputs(folder, described, SAMPLES)
    written, by_hand = load_module(folder / "net.py"), make_by_hand(described, folder)
    with torch.no_grad():
        same = scale_error(by_hand(*inputs), written(*inputs))
    row: dict[str, Any] = {"by hand": same}
    for name, run in (("forward", run_forward), ("step", run_step)):
        exact = run(folder, inputs, "cpu", torch.float64)
        row[name] = {device: scale_errors(run(folder, inputs, device, torch.float32), exact)
                     for device in dict.fromkeys(("cpu", DEVICE))}  # fmt: skip
    inputs = [x.to(DEVICE) for x in read_inputs(folder, described, BATCH)]
    modules = written.to(DEVICE), by_hand.to(DEVICE)
    row["forward ratio"] = compare_times([make_forward(m, inputs) for m in modules])
    row["step ratio"] = compare_times([make_step(m, inputs) for m in modules])
    return row


def read_inputs(folder: Path, described: dict[str, Any], samples: int) -> Tensors:
    """Inputs of the network: those of its file, repeated, or images."""
    if "image" in described:
        size = described["image"]
        generator = torch.Generator().manual_seed(1)
        return [torch.randn(samples, 3, size, size, generator=generator)]
    with np.load(folder / "inputs.npz") as arrays:
        return [torch.from_numpy(np.resize(a, (samples, *a.shape[1:]))) for a in arrays.values()]


def make_by_hand(described: dict[str, Any], folder: Path) -> nn.Module:
    """The same architecture as a person writes it, with the weights of the written module."""
    state = load_module(folder / "net.py").state_dict()
    name = described["name"]
    if "image" in described:
        model = build(name)
        copy_weights(model, [state[key].numpy() for key in described["order"]])
        return model.eval()
    model = Encoder() if name.startswith("bert") else LanguageModel(CELLS[name])
    model.copy_weights([state[key] for key in described["order"]])
    return model.eval()


class LanguageModel(nn.Module):
    """Embedding, two recurrent layers and a decoder, samples first."""

    def __init__(self, cell: type[nn.Module]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.dropout = nn.Dropout(0.2)
        self.rnn = cell(32, 32, num_layers=2, batch_first=True, dropout=0.1)
        self.decoder = nn.Linear(32, 50)

    def copy_weights(self, arrays: Tensors) -> None:
        """Arrays as the layers list them."""
        for parameter, array in zip(self.parameters(), arrays, strict=True):
            parameter.data.copy_(array)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens (samples, steps) to scores (samples, steps, vocabulary)."""
        x = self.dropout(self.embedding(tokens.long()))
        x, _ = self.rnn(x)
        return self.decoder(self.dropout(x))


class Layer(nn.Module):
    """A layer of BERT, steps first; the projection holds query, key and value by head."""

    def __init__(self) -> None:
        super().__init__()
        self.projection, self.output = nn.Linear(32, 96), nn.Linear(32, 32)
        self.inner, self.outer = nn.Linear(32, 128), nn.Linear(128, 32)
        self.norm1, self.norm2 = nn.LayerNorm(32, eps=1e-12), nn.LayerNorm(32)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """``x`` is (steps, samples, units), ``mask`` (samples, 1, 1, steps)."""
        steps, samples, _ = x.shape
        qkv = self.projection(x).reshape(steps, samples, 4, 3, 8).permute(3, 1, 2, 0, 4)
        y = nn.functional.scaled_dot_product_attention(*qkv, attn_mask=mask)
        y = self.output(y.permute(2, 0, 1, 3).reshape(steps, samples, 32))
        x = self.norm1(self.dropout(y) + x)
        y = self.outer(nn.functional.gelu(self.inner(x)))
        return self.norm2(self.dropout(y) + x)


class Encoder(nn.Module):
    """``testing.networks``'s bert_interleaved."""

    def __init__(self) -> None:
        super().__init__()
        self.word, self.segment = nn.Embedding(50, 32), nn.Embedding(2, 32)
        self.position = nn.Embedding(16, 32)
        self.norm, self.dropout = nn.LayerNorm(32, eps=1e-12), nn.Dropout(0.1)
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.pooler = nn.Linear(32, 32)

    def copy_weights(self, arrays: Tensors) -> None:
        """Arrays in the order of Gluon's layers."""
        places = [*self.position.parameters(), *self.word.parameters(),
                  *self.segment.parameters(), *self.norm.parameters()]  # fmt: skip
        for layer in self.layers:
            parts = (layer.projection, layer.output, layer.norm1, layer.norm2, layer.inner,
                     layer.outer)  # fmt: skip
            places += [p for part in parts for p in part.parameters()]
        places += self.pooler.parameters()
        for place, array in zip(places, arrays, strict=True):
            place.data.copy_(array)

    def forward(
        self, tokens: torch.Tensor, segments: torch.Tensor, valid: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens and segments (samples, steps), and how many of them count (samples)."""
        x = (self.word(tokens.long()) + self.segment(segments.long())).permute(1, 0, 2)
        steps = torch.arange(len(x), device=x.device)
        x = self.dropout(self.norm(x + self.position(steps).unsqueeze(1)))
        mask = (steps < valid.unsqueeze(1))[:, None, None]
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler(x[0]))


def prepare(folder: Path, device: str, dtype: torch.dtype) -> nn.Module:
    """The written module on a device."""
    model = load_module(folder / "net.py").to(device)
    return model.to(dtype) if dtype is torch.float64 else model


def place(inputs: Tensors, device: str, dtype: torch.dtype) -> Tensors:
    """Inputs on a device; numbers that are no counts in a type."""
    return [x.to(device, dtype if x.is_floating_point() else x.dtype) for x in inputs]


def run_forward(folder: Path, inputs: Tensors, device: str, dtype: torch.dtype) -> Tensors:
    """The outputs."""
    with torch.no_grad():
        outputs = prepare(folder, device, dtype)(*place(inputs, device, dtype))
    return [y.cpu().double() for y in as_list(outputs)]


def run_step(folder: Path, inputs: Tensors, device: str, dtype: torch.dtype) -> Tensors:
    """The loss of a step, all gradients, and the parameters after it."""
    model = set_training(prepare(folder, device, dtype))
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    loss = find_loss(model(*place(inputs, device, dtype)))
    loss.backward()
    optimizer.step()
    trained = [p for p in model.parameters() if p.grad is not None]
    results = [loss.reshape(1), *(p.grad for p in trained), *trained]
    return [r.detach().cpu().double() for r in results if r is not None]


def set_training(model: nn.Module) -> nn.Module:
    """In training where a layer needs it, without what is drawn at random."""
    needing = (nn.modules.batchnorm._BatchNorm, nn.RNNBase)
    model.train(any(isinstance(m, needing) for m in model.modules()))
    for layer in model.modules():
        if isinstance(layer, nn.Dropout):
            layer.p = 0.0
        elif isinstance(layer, nn.RNNBase):
            layer.dropout = 0.0
    return model


def find_loss(outputs: Any) -> torch.Tensor:
    return sum((y * y).mean() for y in as_list(outputs))  # type: ignore[return-value]


def as_list(outputs: Any) -> Tensors:
    return list(outputs) if isinstance(outputs, list | tuple) else [outputs]


def scale_error(actual: Any, expected: Any) -> float:
    """The largest difference of outputs, as a share of their scale."""
    return max(scale_errors(as_list(actual), as_list(expected)))


def scale_errors(actual: Tensors, expected: Tensors) -> list[float]:
    """The largest and the mean of the differences, as shares of each array's largest number.

    An array that is all but zero, as gradients before a batch norm, counts by the others' numbers.
    """
    sizes = [float(e.abs().max()) for e in expected]
    least = max(max(sizes) / 1e3, 1e-30)
    pairs = zip(actual, expected, sizes, strict=True)
    off = [float((a - e).abs().max()) / max(size, least) for a, e, size in pairs]
    return [max(off), statistics.mean(off)]


def make_forward(model: nn.Module, inputs: Tensors) -> Callable[[], None]:
    model.eval()

    def run() -> None:
        with torch.no_grad():
            model(*inputs)

    return run


def make_step(model: nn.Module, inputs: Tensors) -> Callable[[], None]:
    set_training(model)
    optimizer = torch.optim.SGD(model.parameters(), 1e-6)

    def run() -> None:
        optimizer.zero_grad()
        find_loss(model(*inputs)).backward()
        optimizer.step()

    return run


def compare_times(runs: list[Callable[[], None]]) -> dict[str, float]:
    """The median of the ratios of two functions that take turns, and milliseconds of the first."""
    for run in runs * 3:
        run()
    rounds = []
    for at in range(ROUNDS):
        times = {}
        for index in (0, 1) if at % 2 else (1, 0):
            synchronize()
            start = time.perf_counter()
            for _ in range(3):
                runs[index]()
            synchronize()
            times[index] = (time.perf_counter() - start) / 3
        rounds.append((times[0], times[1]))
    ratio = statistics.median(a / b for a, b in rounds)
    return {"ratio": round(ratio, 3), "ms": round(1e3 * statistics.median(a for a, _ in rounds), 3)}


def synchronize() -> None:
    """Wait for the GPU."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def run_files(folder: Path) -> str:
    """What is off in the outputs of a module on the GPU, or nothing."""
    described = json.loads((folder / "case.json").read_text())
    with np.load(folder / "arrays.npz") as arrays:
        inputs, expected = ([arrays[f"{kind}{at}"] for at in range(described[kind])]
                            for kind in "io")  # fmt: skip
    outputs: dict[str, list[Any]] = {}
    for device in dict.fromkeys(("cpu", DEVICE)):
        try:
            model = load_module(folder / "net.py").to(device)
            with torch.no_grad():
                results = model(*[torch.from_numpy(a).to(device) for a in inputs])
            results = as_list(results)
            stray = [r.device.type for r in results if isinstance(r, torch.Tensor)]
            if device == DEVICE == "cuda" and "cpu" in stray:
                return "an output stays on the processor"
            outputs[device] = [
                r.cpu().numpy() if isinstance(r, torch.Tensor) else r for r in results
            ]
        except Exception as problem:
            text = f"{type(problem).__name__}: {problem}".splitlines()[0][:300]
            return f"on the processor: {text}" if device == "cpu" else text
    try:
        return compare_arrays(outputs[DEVICE], expected, described["bound"])
    except Exception as problem:
        return f"not compared: {problem}"


def compare_arrays(actual: list[Any], expected: list[Any], bound: float) -> str:
    """How far arrays are off, as a share of their scale where that is above a bound."""
    for got, wanted in zip(actual, expected, strict=True):
        got, wanted = np.asarray(got), np.asarray(wanted)
        if got.shape != wanted.shape:
            return f"shape {got.shape}, not {wanted.shape}"
        if wanted.dtype.kind not in "fc":
            share = float((got != wanted).mean()) if got.size else 0.0
            if share:
                return f"{share:.1%} of {wanted.dtype}"
            continue
        finite = np.isfinite(wanted)
        if not np.array_equal(finite, np.isfinite(got)):
            return "infinite elsewhere"
        off = np.abs(got[finite].astype("float64") - wanted[finite].astype("float64"))
        scale = np.abs(wanted[finite]).max() if finite.any() else 1.0
        if off.size and off.max() > bound * max(float(scale), 1e-30):
            return f"off by {off.max() / max(float(scale), 1e-30):.1e}"
    return ""


if __name__ == "__main__":
    main()
