"""A model in parts, as it is printed."""

from __future__ import annotations

import serde
from testing.onnx_live import DIGITS

TOY = DIGITS.parent / "backends" / "toy.toml"


def test_what_is_printed_is_short_and_tells_what_is_where(tmp_path):
    split = serde.partition(DIGITS, TOY)
    manifest = split.save(tmp_path / "parts")
    model = serde.prepare(tmp_path / "parts")
    lines = [f"  {p.name}: {sum(p.operators.values())} nodes" for p in manifest.parts]
    for shown in (str(split), str(manifest), repr(split), repr(manifest)):
        assert [line.split(",")[0] for line in shown.splitlines()[1:]] == lines
    assert str(split).startswith(f"{split.graph.name}: 1 for toy of 2 parts, ")
    assert repr(model) == (
        "(data: float32 (N, 1, H, W)) -> (softmax_output: float32 (N, 10)) in 2 parts"
    )
    assert str(split.report).splitlines()[0].startswith(f"{split.report.source}: toy takes ")
