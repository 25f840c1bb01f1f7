"""Symbols written for other releases, and what those make of them.

All node tests and networks are cells of ``conformance``: docs/results/mxnet-releases.md.
"""

from __future__ import annotations

import json
from itertools import chain

import numpy as np
import pytest
from click.testing import CliRunner

import serde
from serde.cli.commands import main
from serde.errors import Unconvertible, UsageError
from serde.formats.mxnet.from_ir import from_ir
from serde.formats.mxnet.io.symbol_writer import encode_live
from serde.formats.mxnet.release_data import BROUGHT, REMOVED, RENAMED
from serde.formats.mxnet.releases import KNOWN, get_release
from serde.formats.mxnet.target import OF_TWO
from serde.formats.onnx.reader import decode
from serde.legalize.convert import raise_to_ir
from testing.mxnet.make_registry import FILE, SECOND_FILE
from testing.mxnet.make_releases import by_name, things
from testing.mxnet_live import run_symbol
from testing.onnx_live import model_of, run_model

LACKING = """
g (float[2,3] x, float[2,3] z) => (int64[2,K] y, bool[2,3] more)
{
  y = NonZero (x)
  more = Greater (x, z)
}"""
LARGE = """
g (int32[3] x) => (int32[3] y)
{
  n = Constant <value = int32 {16777217}> ()
  y = Sub (n, x)
}"""
GELU = "g (float[2,3] x) => (float[2,3] y) { y = Gelu (x) }"
REACHING = """
g (float[4,5] x) => (float[3,5] y)
{
  begins = Constant <value_ints = [1, 90]> ()
  ends = Constant <value_ints = [90, -90]> ()
  axes = Constant <value_ints = [0, 1]> ()
  steps = Constant <value_ints = [1, -1]> ()
  y = Slice (x, begins, ends, axes, steps)
}"""
LEAST = """
g (int8[2,3] x) => (int8[2,3] y) { low = Constant <value = int8 {-3}> () y = Clip (x, low) }"""
X = np.random.default_rng(0).standard_normal((4, 5), np.float32)
# A model, what it is run on, something of its symbol and the releases that have it there.
WAYS = {
    "a large number": (LARGE, np.int32([-5, 7, 2]), "_rminus_scalar", KNOWN[5:]),
    "gelu": (GELU, X[:2, :3], '"act_type": "gelu"', ("1.5", "1.6", "1.8", "1.9", "2.0")),
    "beyond the ends": (REACHING, X, '"end": "(4, None)"', KNOWN),
    "a bound left out": (LEAST, np.int8([[-9, 0, 9]] * 2), '"a_max": "127"', KNOWN),
}


def write_symbol(body, release):
    graph = from_ir(raise_to_ir(decode(model_of(body))), mxnet=release)
    return encode_live(graph, release)


@pytest.mark.parametrize("way", WAYS)
def test_what_a_release_has_otherwise(way):
    """Each form is right in the newest release, too."""
    body, x, form, having = WAYS[way]
    for release in KNOWN:
        text, arrays = write_symbol(body, release)
        number = json.loads(text)["attrs"]["mxnet_version"][1]
        assert number == int(release[0]) * 10000 + int(release[2]) * 100
        assert (form in text) == (release in having), release
        held = {n.partition(":")[2]: t.load() for n, t in arrays.items()}
        expected = run_model(model_of(body), {"x": x})
        for a, b in zip(run_symbol(text, held, {"x": x}), expected, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_what_a_release_lacks_is_refused_by_name():
    with pytest.raises(Unconvertible) as caught:
        write_symbol(LACKING, "1.5")
    assert [(p.op, p.reason) for p in caught.value.problems] == [
        ("output", "booleans, which no tensor of MXNet 1.5 holds"),
        ("NonZero", "MXNet 1.5 has no operator _npx_nonzero, which came with 1.6"),
    ]
    assert write_symbol(LACKING, "1.6.0")


def test_the_command_takes_a_release(tmp_path):
    source, target = tmp_path / "m.onnx", tmp_path / "m-symbol.json"
    source.write_bytes(model_of(LACKING).SerializeToString())
    result = CliRunner().invoke(main, ["check", str(source), "--to", "mxnet", "--mxnet", "1.5"])
    assert result.exit_code == 1 and "_npx_nonzero" in result.output
    done = CliRunner().invoke(main, ["convert", str(source), "-o", str(target), "--mxnet", "1.6.0"])
    assert done.exit_code == 0, done.output
    assert json.loads(target.read_text())["attrs"] == {"mxnet_version": ["int", 10600]}


@pytest.mark.parametrize("release", ["1.1", "2.1", "1", "1.x", ""])
def test_other_releases_are_refused(release, tmp_path):
    with pytest.raises(UsageError, match=r"1\.2, 1\.3, 1\.4, 1\.5, 1\.6, 1\.7, 1\.8, 1\.9, 2\.0"):
        get_release(release)
    source = tmp_path / "m.onnx"
    source.write_bytes(model_of(GELU).SerializeToString())
    with pytest.raises(UsageError, match=r"symbols are written for"):
        serde.check(source, to="mxnet", mxnet=release)


def test_builds_of_a_release_are_that_release():
    assert get_release("1.7.0.post2") is get_release("1.7.0")
    assert get_release("1.9.1b20210101").number == 10901
    assert get_release("2.0.0b1").number == 20000


def test_what_came_is_in_the_registry():
    entries = json.loads(FILE.read_text())
    has = things(entries, {n: entry.get("aliases", ()) for n, entry in entries.items()})
    assert {*chain.from_iterable(map(str.split, (*BROUGHT.values(), REMOVED)))} <= has


def test_what_is_called_otherwise_is_in_both_registries():
    newest, second = (by_name(json.loads(path.read_text())) for path in (FILE, SECOND_FILE))
    assert all(old in newest and old not in second for old in RENAMED)
    assert all(new in second for new in RENAMED.values())


def test_numbers_of_64_bits_came_with_one_release():
    assert {f"{op}.scalar=double" for op in OF_TWO} <= set(BROUGHT["1.7"].split())
