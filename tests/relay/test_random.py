"""Random numbers: refused, drawn by the runtime, or made of noise that is given."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from serde.decompositions.random_source import REASON
from serde.errors import Unconvertible
from serde.formats.onnx.writer import to_proto
from serde.formats.relay.json.reader import parse_json
from serde.formats.relay.text.parser import parse_text
from serde.formats.relay.to_ir import module_graph, to_ir
from serde.legalize.convert import lower_to
from serde.passes import tidy
from testing.onnx_live import PLAIN, run_at
from testing.relay.running import fed_and_given
from testing.relay.tvm_live import ask

COUNT = 4000
KEY = "R.random.threefry_key(7)"
DRAWN = {  # an expression of the key, and of what inputs
    "uniform": (f"R.random.uniform({KEY}, ({COUNT},), 'float32', -1.0, 3.0)", []),
    "uniform-f64": (f"R.random.uniform({KEY}, (2, {COUNT // 2}), 'float64', 2.0, 2.5)", []),
    "normal": (f"R.random.normal({KEY}, ({COUNT},), 'float32', 5.0, 0.5)", []),
    "split": (
        f"R.random.normal(R.TupleGetItem(R.random.threefry_split({KEY}), 0), ({COUNT},))",
        [],
    ),
    "multinomial": (f"R.random.multinomial({KEY}, a, {COUNT})", ["5:float32:0.1:1"]),
}


def graph_of(name, tmp_path, random):
    expression, inputs = DRAWN[name]
    second = f"R.TupleGetItem({expression}, 1)"
    forms = ask("live", name, second, inputs, "", str(tmp_path / "io.npz"))
    feeds, (theirs, *_) = fed_and_given(tmp_path / "io.npz")
    module = module_graph(parse_json(forms["static"], name))
    return tidy(to_ir(module, random=random)), feeds, theirs


@pytest.mark.parametrize("random", ["onnx", "input"])
@pytest.mark.parametrize("name", DRAWN)
def test_distribution(name, random, tmp_path):
    graph, feeds, theirs = graph_of(name, tmp_path, random)
    generator = np.random.default_rng(3)
    for value in graph.inputs:
        if value.name not in feeds:
            kind = generator.random if "uniform" in value.name else generator.standard_normal
            feeds[value.name] = kind(value.shape).astype("float32")
    onnxruntime.set_seed(11)
    (ours,) = run_at(PLAIN, to_proto(lower_to(graph, 17)), feeds)
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    spread = theirs.std()
    assert abs(ours.mean() - theirs.mean()) < 0.08 * spread
    assert abs(ours.std() - theirs.std()) < 0.08 * spread
    for share in (0.05, 0.25, 0.5, 0.75, 0.95):
        low, high = np.quantile(theirs, [max(share - 0.03, 0), min(share + 0.03, 1)])
        assert low - 1e-6 <= np.quantile(ours, share) <= high + 1e-6


def test_is_refused_unless_asked_for():
    text = "def @main(%k: Tensor[(10), uint64]) { random.normal(%k, 0f, 1f, out_shape=[3]).1 }"
    with pytest.raises(Unconvertible) as caught:
        to_ir(module_graph(parse_text(text)))
    assert REASON in str(caught.value)
