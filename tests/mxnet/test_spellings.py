"""Attributes in all spellings that MXNet takes, and some that it does not."""

from __future__ import annotations

import numpy as np
import pytest

from serde.errors import Unconvertible
from serde.formats.mxnet.rules import parse
from testing.mxnet.cases import case, check, f32
from testing.mxnet_live import live_mxnet

X = f32(2, 3, 4)
IMAGE = f32(2, 3, 6, 6)
SHAPES = ("(2,2)", "[2, 2]", "(2L, 2L)", "[2L,2L]", "(2,2,)", "( 2 , 2 )", " (2,2)", "(+2,02)")
TAKEN = {  # operator, input, other attributes, the attribute, its spellings
    "kernel": ("Pooling", IMAGE, {"pool_type": "max"}, SHAPES),
    "stride": ("Pooling", IMAGE, {"pool_type": "max", "kernel": "(2,2)"}, SHAPES),
    "axes": ("transpose", X, {}, ("(0,2,1)", "[0,2,1]", "(0L,2L,1L)", "(0, 2, 1,)")),
    "begin": ("slice", X, {"end": "(2,3)"}, ("(None,1)", "[0,1]", "(0L,1L)", "( None , 1 )")),
    "axis": ("sum", X, {}, ("1", "(1,)", "[1]", "(1,2)", "(1L,)", "(-1,)", "None", "()")),
    "dim2": ("SwapAxis", X, {"dim1": "0"}, ("2", "+2", " 2", "02")),
    "keepdims": ("mean", X, {"axis": "1"}, ("True", "true", "TRUE", "tRue", "1", "FALSE", "0")),
    "slope": ("LeakyReLU", X, {}, ("0.5", ".5", "5e-1", "5E-1", "1", "+0.5", "0.5f", "1.F", " .5")),
    "scalar": ("_mul_scalar", X, {}, ("2", "2.5", "1e-1f", "inf")),
    "sizes": ("_contrib_MultiBoxPrior", IMAGE, {}, ("(0.5,0.25)", "[.5, 0.25]", "(5e-1,1)")),
    "newshape": ("_np_reshape", X, {}, ("(3,-1)", "[3, -1]", "(3L,-1)")),
}


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, (*_, texts) in TAKEN.items() for text in texts]
)
def test_what_mxnet_takes(name, text):
    op, x, others, _ = TAKEN[name]
    live_mxnet()
    with np.errstate(all="ignore"):
        check(case(op, x, **others, **{name: text}))


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("mean", {"keepdims": "yes"}),
        ("mean", {"keepdims": "2"}),
        ("SwapAxis", {"dim2": "1.5"}),
        ("SwapAxis", {"dim2": "0x1"}),
        ("LeakyReLU", {"slope": "1/2"}),
        ("LeakyReLU", {"slope": "f"}),
        ("transpose", {"axes": "(0;2;1)"}),
        *(("SwapAxis", {"dim2": text}) for text in ("1_0", "٣", "３", "²", "nan", "inf", "1f")),
        *(("SwapAxis", {"dim2": text}) for text in ("1e300", "9223372036854775808", "-1e19")),
        *(("LeakyReLU", {"slope": text}) for text in ("1_0", "٣", "1_0f")),
        ("transpose", {"axes": "(0,٢,1)"}),
        ("softmax", {"dtype": "(1e19,)"}),
    ],
)
def test_what_mxnet_does_not_take(op, attrs):
    live_mxnet()
    with pytest.raises(Unconvertible, match="is not a|is called"):
        check(case(op, X, **attrs).but(oracle=lambda case: [X]))


def test_a_number_beyond_all_use_is_named():
    live_mxnet()
    with pytest.raises(Unconvertible, match="has a number that means nothing there"):
        check(case("_npi_around", X, decimals="999999999").but(oracle=lambda case: [X]))


def test_old_files_write_integers_as_floats():
    assert parse(int, "1.0") == parse(int, "1e0") == parse(int, "1L") == 1
