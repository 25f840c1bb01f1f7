"""Parameters beside a module: found by name or as the only ones that fit, and said which."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import serde
from serde.errors import MalformedFile, UsageError
from serde.formats.relay.io.params import read_params, write_params
from serde.ir.graph import Tensor

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 3), float32], %w: Tensor[(2, 3), float32], %b: Tensor[(2), float32]) {
  nn.bias_add(nn.dense(%x, %w, units=2), %b)
}
"""
OTHER = TEXT.replace("%w", "%weight")
BARE = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 3), float32]) { nn.relu(%x) }
"""
W, B = np.arange(6, dtype=np.float32).reshape(2, 3), np.float32([1, 2])


def lay_out(folder: Path, files: dict) -> Path:
    """Files of text, of arrays as TVM saves them, or as NumPy does; bytes as they are."""
    for name, content in files.items():
        path = folder / name
        if isinstance(content, str):
            path.write_text(content)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        elif name.endswith(".npz"):
            np.savez(path, **content)
        else:
            write_params({n: Tensor.of(np.asarray(a)) for n, a in content.items()}, path)
    return folder


FULL = {"w": W, "b": B}
# Files; the module; the parameter file that is its own.
FOUND = {
    "what serde writes": ({"m.relay": TEXT, "m.params": FULL}, "m.relay", "m.params"),
    "of a text": ({"m.txt": TEXT, "m.params": FULL}, "m.txt", "m.params"),
    "an archive of arrays": ({"m.relay": TEXT, "m.npz": FULL}, "m.relay", "m.npz"),
    "another ending": ({"m.relay": TEXT, "m.bin": FULL}, "m.relay", "m.bin"),
    "another name": ({"m.relay": TEXT, "m_param.params": FULL}, "m.relay", "m_param.params"),
    "the first of its names": (
        {"m.relay": TEXT, "m.params": FULL, "m.npz": FULL, "m_params.bin": FULL}, "m.relay",
        "m.params",
    ),
    "dots in the name": ({"m.v2.relay": TEXT, "m.v2.params": FULL, "m.params": {"q": B}},
                         "m.v2.relay", "m.v2.params"),
    "the only one": ({"m.relay": TEXT, "deploy_param.params": FULL}, "m.relay",
                     "deploy_param.params"),
    "the only one that fits": (
        {"m.relay": TEXT, "a.params": {"q": B}, "b.params": {"w": B}, "p.bin": FULL}, "m.relay",
        "p.bin",
    ),
    "not another module's": (
        {"m.relay": TEXT, "o.relay": TEXT, "o.params": FULL, "p.params": {"w": W, "b": B}},
        "m.relay", "p.params",
    ),
    "not every parameter": ({"m.relay": TEXT, "m.params": {"w": W}}, "m.relay", "m.params"),
}  # fmt: skip


@pytest.mark.parametrize(("files", "module", "params"), FOUND.values(), ids=FOUND)
def test_parameters_are_found(files, module, params, tmp_path):
    folder = lay_out(tmp_path, files)
    graph = serde.load(folder / module)
    free = [n for n in ("x", "w", "b") if n not in files[params]]
    assert [v.name for v in graph.inputs] == free
    assert any(str(folder / params) in note for note in graph.notes)
    target = folder / "out.onnx"
    assert serde.convert(folder / module, target).notes == list(graph.notes)


# Files; what the report says.
NONE = {
    "nothing": ({}, "2 inputs look like weights: w, b. Where they are in a file, name it with"),
    "another module's": ({"o.relay": TEXT, "o.params": FULL}, "2 inputs look like weights"),
    "other parameters": ({"p.params": {"q": B}}, "p.params beside the module: not used"),
    "inputs": ({"data.npz": {"x": W[:1]}}, "2 inputs look like weights"),
    "another framework's": ({"m.params": b"\x12\x01" + bytes(30)}, "2 inputs look like weights"),
}


@pytest.mark.parametrize(("files", "note"), NONE.values(), ids=NONE)
def test_none_are_found(files, note, tmp_path):
    graph = serde.load(lay_out(tmp_path, {"m.relay": TEXT, **files}) / "m.relay")
    assert [v.name for v in graph.inputs] == ["x", "w", "b"]
    assert any(note in n for n in graph.notes)


@pytest.mark.parametrize(
    ("held", "why"),
    [
        ({"w": W, "bias": B}, "bias belongs to no parameter"),
        ({"w": W.T, "b": B}, r"w is float32\[3, 2\], @main takes float32\[2, 3\]"),
        ({"w": W.astype(np.float64)}, "w is float64"),
    ],
)
def test_those_named_after_the_module_have_to_fit(held, why, tmp_path):
    lay_out(tmp_path, {"m.relay": TEXT, "m.params": held})
    with pytest.raises(MalformedFile, match=why) as caught:
        serde.load(tmp_path / "m.relay")
    assert str(tmp_path / "m.params") in str(caught.value)


def test_several_that_fit_are_not_chosen_from(tmp_path):
    lay_out(tmp_path, {"m.relay": TEXT, "a.params": FULL, "b.params": {"w": W}})
    with pytest.raises(UsageError, match=r"a\.params, b\.params: name one with params="):
        serde.load(tmp_path / "m.relay")
    graph = serde.load(tmp_path / "m.relay", params=tmp_path / "b.params")
    assert [v.name for v in graph.inputs] == ["x", "b"]


def test_a_module_without_free_parameters_has_no_note(tmp_path):
    assert serde.load(lay_out(tmp_path, {"m.relay": BARE}) / "m.relay").notes == ()


@pytest.mark.parametrize("suffix", [".relay", ".json"])
class TestWriting:
    """What is written is what is read again."""

    def test_weights_replace_those_that_were_there(self, suffix, tmp_path):
        lay_out(tmp_path, {"s.relay": TEXT, "s.params": FULL, "m.params": {"q": B}, "m.npz": FULL})
        written = tmp_path / f"m{suffix}"
        written.write_text(BARE)
        report = serde.convert(tmp_path / "s.relay", written)
        assert report.files == [str(written), str(tmp_path / "m.params")]
        assert [v.name for v in serde.load(written).inputs] == ["x"]

    @pytest.mark.parametrize("stale", ["m.params", "m.npz", "other.params"])
    def test_a_module_without_weights_takes_none(self, stale, suffix, tmp_path):
        lay_out(tmp_path, {"s.relay": BARE})
        (tmp_path / "to").mkdir()
        lay_out(tmp_path / "to", {stale: {"x": W[:1]}})
        written = tmp_path / "to" / f"m{suffix}"
        written.write_text(BARE)
        serde.convert(tmp_path / "s.relay", written)
        assert [v.name for v in serde.load(written).inputs] == ["x"]

    def test_in_place(self, suffix, tmp_path):
        lay_out(tmp_path, {"s.relay": TEXT, "s.params": FULL})
        module = tmp_path / f"m{suffix}"
        serde.convert(tmp_path / "s.relay", module)
        before = (tmp_path / "m.params").read_bytes()
        serde.convert(module, module)
        assert (tmp_path / "m.params").read_bytes() == before
        assert sorted(read_params(tmp_path / "m.params")) == ["b", "w"]
