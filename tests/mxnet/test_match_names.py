"""Arrays of Gluon's ``save_parameters``, matched with the variables of a symbol."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import serde
from serde.errors import MalformedFile
from serde.formats.mxnet.bind.match_names import match_arrays
from serde.ir.graph import Tensor
from testing.mxnet_live import live_mxnet

X = np.random.default_rng(3).standard_normal((2, 4)).astype("float32")
IMAGE = np.random.default_rng(4).standard_normal((1, 3, 224, 224)).astype("float32")


def make_block(make: Any, forward: Any) -> Any:
    """A block whose children and parameters ``make(block, nn)`` makes, under its name scope."""
    gluon = live_mxnet().gluon

    class Made(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__(prefix="made0_")
            with self.name_scope():
                make(self, gluon.nn)

        def hybrid_forward(self, F, x, **params):
            return forward(self, F, x, params)

    return Made()


def make_gate(b, nn) -> None:
    b.value, b.gate = nn.Dense(4), nn.Dense(4)


def run_gate(b, F, x, params):
    return F.sigmoid(b.gate(x)) * b.value(x)


def make_own(b, nn, attribute: str = "weight", name: str = "weight", **options) -> None:
    b.dense = nn.Dense(4, use_bias=False)
    setattr(b, attribute, b.params.get(name, shape=(4, 4)))


def run_own(b, F, x, params):
    (own,) = params.values()
    return F.FullyConnected(F.tanh(b.dense(x)), own, num_hidden=4, no_bias=True)


def make_attention(b, nn) -> None:
    for word in ("query", "key", "value"):
        setattr(b, f"proj_{word}", nn.Dense(4, prefix=f"{word}_"))


def run_attention(b, F, x, params):
    return b.proj_value(x) * F.tanh(b.proj_key(x)) + F.sin(b.proj_query(x))


def make_ends(b, nn) -> None:
    b.dense = nn.Dense(4, use_bias=False)
    b.w2_weight = b.params.get("w2_weight", shape=(4, 4))
    b.weight = b.params.get("weight", shape=(4, 4))


def run_ends(b, F, x, params):
    for name in ("w2_weight", "weight"):
        x = F.tanh(F.FullyConnected(x, params[name], num_hidden=4, no_bias=True))
    return b.dense(x)


def make_reversed(b, nn) -> None:
    for number in range(12):
        setattr(b, f"layer{number}", nn.Dense(4))


def run_reversed(b, F, x, params):
    for number in reversed(range(12)):
        x = F.tanh(getattr(b, f"layer{number}")(x))
    return x


def make_prefixed(b, nn) -> None:
    b.w2, b.w1 = nn.Dense(4, prefix="w2_"), nn.Dense(4, prefix="w1_")


def make_constant(b, nn) -> None:
    b.dense = nn.Dense(4)
    b.scale = b.params.get_constant("scale", live_mxnet().nd.array([[1, 2, 3, 4]]))


def make_shared(b, nn) -> None:
    b.first, b.other = nn.Dense(4), nn.Dense(4)
    b.again = nn.Dense(4, params=b.first.params)


def make_nested(b, nn, scope: bool = True) -> None:
    """A block that is used last and made first, one of many layers, and one of three."""
    b.head, b.body = nn.Dense(4), nn.HybridSequential()
    with b.body.name_scope() if scope else nullcontext():
        for _ in range(11):
            b.body.add(nn.Dense(4, activation="tanh"))
    b.tail = make_block(make_tail, run_tail)


def run_nested(b, F, x, params):
    return b.head(b.tail(b.body(x)))


def make_tail(b, nn) -> None:
    b.out, b.value, b.gate = nn.Dense(4), nn.Dense(4), nn.Dense(4)


def run_tail(b, F, x, params):
    return F.sigmoid(b.gate(x)) * b.value(x) + b.out(x)


def make_weights(b, nn) -> None:
    for name in ("w2", "w1"):
        setattr(b, name, b.params.get(f"{name}_weight", shape=(4, 4)))
    b.dense = nn.Dense(4)


def run_weights(b, F, x, params):
    return F.dot(F.tanh(F.dot(b.dense(x), params["w1"])), params["w2"])


def make_unused(b, nn) -> None:
    b.other, b.dense = (nn.Dense(n, in_units=4) for n in (7, 4))


def make_recurrent(b, nn) -> None:
    b.rnn = live_mxnet().gluon.rnn.GRU(2, 2, bidirectional=True, input_size=4)


def run_recurrent(b, F, x, params):
    return b.rnn(F.expand_dims(x, axis=0))


# What a block is made of, what it computes, and words of the notes beside those of the pairs.
BLOCKS: dict[str, tuple[Any, Any, str]] = {
    "used in another order": (make_gate, run_gate, "fit other arrays as well"),
    "a parameter of its own": (make_own, run_own, ""),
    "an attribute of another name": (lambda b, nn: make_own(b, nn, "w"), run_own, ""),
    "a kind of its own": (lambda b, nn: make_own(b, nn, "w", "alpha"), run_own, ""),
    "prefixes of words": (make_attention, run_attention, ""),
    "names that end alike": (make_ends, run_ends, ""),
    "more than ten": (make_reversed, run_reversed, "fit other arrays as well"),
    "prefixes with numbers": (
        make_prefixed, lambda b, F, x, p: b.w2(F.tanh(b.w1(x))), "fit other arrays as well",
    ),
    "a constant": (make_constant, lambda b, F, x, p: F.broadcast_mul(b.dense(x), p["scale"]), ""),
    "blocks in blocks": (make_nested, run_nested, "fit other arrays as well"),
    "blocks in blocks without names": (
        lambda b, nn: make_nested(b, nn, False), run_nested, "fit other arrays as well",
    ),
    "attributes called as the weights": (make_weights, run_weights, "fit other arrays as well"),
    "a layer that is not used": (make_unused, lambda b, F, x, p: b.dense(x), "no variable"),
    "a recurrent layer": (make_recurrent, run_recurrent, ""),
    "a shared layer": (make_shared, lambda b, F, x, p: b.again(F.tanh(b.other(b.first(x)))), ""),
}  # fmt: skip


def save_block(block: Any, x: np.ndarray, folder: Any) -> np.ndarray:
    """Save a block's symbol, and its parameters by attribute; return what it computes."""
    mx = live_mxnet()
    rng = np.random.default_rng(7)
    block.initialize(mx.init.Xavier())
    block.hybridize()
    block(mx.nd.array(x))
    for name, param in block.collect_params().items():
        if param.grad_req != "null" or "running" in name:
            width = 1 / np.sqrt(np.prod(param.shape[1:])) if len(param.shape) > 1 else 0.1
            middle = 1 if name.endswith(("var", "gamma")) else 0
            param.set_data(mx.nd.array(rng.uniform(middle - width, middle + width, param.shape)))
    y = block(mx.nd.array(x)).asnumpy()
    mx.sym.Group([block(mx.sym.var("data"))]).save(str(folder / "net-symbol.json"))
    block.save_parameters(str(folder / "net.params"))
    return y


@pytest.mark.filterwarnings("ignore:Parameter made0_.* is not used")
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name: str, tmp_path) -> None:
    make, forward, note = BLOCKS[name]
    y = save_block(make_block(make, forward), X, tmp_path)
    report = serde.convert(
        tmp_path / "net-symbol.json", tmp_path / "net.onnx", inputs={"data": X.shape},
        params=tmp_path / "net.params", match_params=True, verify=True, data={"data": X},
    )  # fmt: skip
    assert report.ok and report.verification.done
    (got,) = run_onnx(tmp_path / "net.onnx", X)
    assert np.allclose(got, y, atol=1e-5)
    others = [n for n in report.notes if ", by kind, shape and order" not in n]
    assert any(note in n for n in others) if note else not any("fit other" in n for n in others)


def run_onnx(path, x) -> list[np.ndarray]:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path))
    return session.run(None, {session.get_inputs()[0].name: x})


ZOO = ["resnet18_v1", "resnet18_v2", "densenet121", "mobilenet_v2_0_25"]


@pytest.mark.parametrize("name", ZOO)
def test_networks_of_the_zoo(name: str, tmp_path) -> None:
    block = getattr(live_mxnet().gluon.model_zoo.vision, name)()
    y = save_block(block, IMAGE, tmp_path)
    graph = serde.load(
        tmp_path / "net-symbol.json", params=tmp_path / "net.params", match_params=True,
        inputs={"data": IMAGE.shape},
    )  # fmt: skip
    serde.save(graph, tmp_path / "net.onnx")
    (got,) = run_onnx(tmp_path / "net.onnx", IMAGE)
    assert np.allclose(got, y, rtol=1e-4, atol=1e-4 * np.abs(y).max())


def match(variables: dict[str, Any], *arrays: tuple[str, tuple[int, ...]]) -> Any:
    tensors = {n: Tensor.of(np.full(s, i, "float32")) for i, (n, s) in enumerate(arrays)}
    return match_arrays(variables, tensors, "net.params")


S = (4, 4)


def test_equal_arrays_may_be_exchanged() -> None:
    tensors = {n: Tensor.of(np.ones(S, "float32")) for n in ("x.weight", "y.weight")}
    found = match_arrays({"n0_b0_weight": S, "n0_a0_weight": S}, tensors, "net.params")
    assert found.names == {"n0_b0_weight": "x.weight", "n0_a0_weight": "y.weight"}


def test_shapes_tell_where_no_order_fits() -> None:
    found = match(
        {"n0_a0_weight": (1, 4), "n0_b0_weight": (2, 4), "n0_c0_weight": (3, 4)},
        ("z.weight", (3, 4)), ("x.weight", (1, 4)), ("y.weight", (2, 4)),
    )  # fmt: skip
    assert [*found.names] == ["n0_c0_weight", "n0_a0_weight", "n0_b0_weight"]


REFUSED = {
    "'x.weight', 'y.weight' may be 'n0_b0_weight', 'n0_a0_weight' in several orders": (
        {"n0_b0_weight": S, "n0_a0_weight": S}, [("x.weight", S), ("y.weight", S)],
    ),
    "comes where 'n0_d0_weight'": (
        {"n0_d0_weight": (2, None), "n0_d1_weight": (2, None), "n0_d2_weight": (3, None)},
        [("a.weight", (3, 4)), ("b.weight", (2, 4)), ("c.weight", (2, 4))],
    ),
    "would be 'n0_": (
        dict.fromkeys(("n0_w1_weight", "n0_w1_bias", "n0_w2_weight", "n0_w2_bias", "n0_w3_weight")),
        [("w2_weight", S), ("w2.weight", S), ("w2.bias", S), ("w1.weight", S), ("w1.bias", S)],
    ),
    "has 1 arrays that are a weight and match no name, for 2 such variables": (
        {"n0_d0_weight": S, "n0_d1_weight": S}, [("a.weight", S)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message: str) -> None:
    variables, arrays = REFUSED[message]
    with pytest.raises(MalformedFile, match=message) as caught:
        match(variables, *arrays)
    assert "give a mapping of those names to arrays" in str(caught.value)


def test_long_names_are_split_in_few_parts() -> None:
    name = "_".join("ab" for _ in range(5_000)) + "_weight"
    assert match({name: S}, ("x.weight", S)).names == {name: "x.weight"}
