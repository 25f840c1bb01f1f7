"""What programs draw is refused, drawn by the runtime, or made of noise that is an input."""

from __future__ import annotations

import os

import numpy as np
import onnxruntime
import pytest

import serde
from testing.pt2.run import VARIABLE, export_cases

SIZE = "[80, 50]"
LIKE = "torch.zeros(80, 50) + x[0, 0] * 0"
DRAWN = {  # an expression, of which PyTorch's own numbers are recorded
    "rand": f"torch.rand({SIZE})", "randn": f"torch.randn({SIZE}, dtype=torch.float64)",
    "rand_like": f"torch.rand_like({LIKE})", "randn_like": f"torch.randn_like({LIKE})",
    "sizes": "torch.randn(x.shape[0], 9000)", "randint": f"torch.randint(7, {SIZE})",
    "randint.low": f"torch.randint(-2, 5, {SIZE}, dtype=torch.int32)",
    "randint_like": f"torch.randint_like({LIKE}, 3)",
    "randint_like.low_dtype": f"torch.randint_like({LIKE}, 2, 4)",
    "bernoulli": f"torch.bernoulli({LIKE} + 0.3)", "bernoulli.p": f"A.bernoulli.p({LIKE}, 0.8)",
    "bernoulli.float": f"({LIKE}).bernoulli_(0.7)",
    "normal.Tensor_Tensor": f"torch.normal({LIKE} + 2, {LIKE} + 0.5)",
    "normal.Tensor_float": f"torch.normal({LIKE}, 3.0)",
    "normal.float_Tensor": f"torch.normal(1.0, {LIKE} + 0.5)",
    "normal.float_float": f"torch.normal(1.0, 2.0, {SIZE})",
    "normal": f"({LIKE}).normal_(1.0, 2.0)", "uniform": f"({LIKE}).uniform_(-1, 3)",
    "exponential": f"({LIKE}).exponential_(2.0)", "randperm": "torch.randperm(4000)",
    "multinomial": "torch.multinomial(torch.tensor([0.1, 0.0, 0.6, 0.3]), 4000, True)",
    "multinomial-pairs":
        "torch.multinomial(torch.tensor([0.5, 0.2, 0.3, 0.0]).expand(2000, 4), 2)",
}  # fmt: skip
live = pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} names no live PyTorch")


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("random")
    cases = [(name, text, "f(4, 3)", {"dynamic": [[0]]} if name == "sizes" else {})
             for name, text in DRAWN.items()]  # fmt: skip
    return folder, dict(zip(DRAWN, export_cases(cases, folder), strict=True))


def feeds_of(session, seed):
    """Zeros, and noise for the inputs that are noise."""
    generator = np.random.default_rng(seed)
    feeds = {}
    for value in session.get_inputs():
        shape = [d if isinstance(d, int) else 4 for d in value.shape]
        kind = generator.random if "uniform" in value.name else generator.standard_normal
        is_noise = "uniform" in value.name or "normal" in value.name
        feeds[value.name] = (kind(shape) if is_noise else np.zeros(shape)).astype(np.float32)
    return feeds


@live
@pytest.mark.parametrize("random", ["onnx", "input"])
@pytest.mark.parametrize("name", DRAWN)
def test_numbers_are_of_the_distribution(exports, name, random, tmp_path):
    folder, names = exports
    with np.load(folder / f"{names[name]}.npz") as recorded:
        theirs = recorded["out0"]
    serde.convert(folder / f"{names[name]}.pt2", tmp_path / "m.onnx", random=random)
    onnxruntime.set_seed(11)
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    (ours,), (others,) = (session.run(None, feeds_of(session, seed)) for seed in (3, 4))
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    assert (ours != others).any()
    spread = theirs.std()
    assert abs(ours.mean() - theirs.mean()) < 0.1 * spread
    assert abs(ours.std() - theirs.std()) < 0.1 * spread
    for share in (0.05, 0.25, 0.5, 0.75, 0.95):
        low, high = np.quantile(theirs, [max(share - 0.03, 0), min(share + 0.03, 1)])
        assert low <= np.quantile(ours, share) <= high
    if name in ("randperm", "multinomial-pairs"):
        rows = ours.reshape(-1, ours.shape[-1])
        assert all(len({*row}) == len(row) for row in rows.tolist())


@live
def test_places_without_a_share_are_never_drawn(exports, tmp_path):
    folder, names = exports
    for name, place in (("multinomial", 1), ("multinomial-pairs", 3)):
        target = tmp_path / f"{name}.onnx"
        serde.convert(folder / f"{names[name]}.pt2", target, random="onnx")
        session = onnxruntime.InferenceSession(str(target))
        (ours,) = session.run(None, feeds_of(session, 3))
        assert place not in ours
