"""Operands that are computed from sizes, which tract has a type of its own for."""

from __future__ import annotations

import pytest

from tests.consumers.checks import check_form, refusals

SIZES = (
    "z = Constant<value_ints = [0]>() o = Constant<value_ints = [1]>() t = Constant<value_ints = [2]>() "
    "s = Shape(x) rows = Slice(s, z, o, z) columns = Slice(s, o, t, z) "
    "more = Sub(columns, rows) m = Squeeze(more, z) "
)
FORMS = {  # with more rows than columns, and fewer
    "a triangle": "y = Trilu(x, m)",
    "the lower triangle": "y = Trilu<upper = 0>(x, m)",
    "a triangle of integers": "i = Cast<to = 6>(x) k = Trilu(i, m) y = Cast<to = 1>(k)",
    "a triangle of booleans": "i = Cast<to = 9>(x) k = Trilu(i, m) y = Cast<to = 1>(k)",
    "a causal mask": (
        "h = Constant<value = bool[1] {1}>() e = Expand(h, s) k = Trilu<upper = 0>(e, m) "
        "n = Constant<value_float = -1000.0>() w = Where(k, x, n) y = Softmax(w)"
    ),
    "the last column": (
        "l = Sub(columns, o) i = Unsqueeze(l, z) y = GatherElements<axis = 1>(x, i)"
    ),
    "an update of the last column": (
        "l = Sub(columns, o) i = Unsqueeze(l, z) u = Slice(x, z, o, z) v = Slice(u, z, o, o) "
        "y = ScatterElements<axis = 1>(x, i, v)"
    ),
    "sums of sizes": "a = Constant<value_int = 0>() c = CumSum(s, a) y = Cast<to = 1>(c)",
    "a range of a size": (
        "r = Constant<value_int = 0>() c = Squeeze(columns, z) d = Constant<value_int = 1>() "
        "n = Range(r, c, d) k = Cast<to = 1>(n) y = Add(x, k)"
    ),
}
ODD = "(float[A,B] x) => (y)"


@pytest.mark.parametrize("rows", [3, 9])
@pytest.mark.parametrize("form", FORMS)
def test_operands_of_sizes_by_name(form, rows, tmp_path):
    signature = ODD.replace("A,", f"{rows},")
    check_form(signature, SIZES + FORMS[form], {}, "tract", tmp_path)
    check_form(ODD, SIZES + FORMS[form], {}, "tract", tmp_path)


def test_sums_of_numbers_cast_to_int64(tmp_path):
    body = "a = Constant<value_int = 0>() i = Cast<to = 7>(x) c = CumSum(i, a) y = Cast<to = 1>(c)"
    check_form("(int32[A,3] x) => (y)", body, {}, "tract", tmp_path)


@pytest.mark.parametrize("k", [-2, 0, 1])
def test_a_triangle_by_an_input(k, tmp_path):
    held = {"k": k}
    check_form("(float[A,B] x, int64 k) => (y)", "y = Trilu(x, k)", held, "tract", tmp_path)


def test_steps_of_a_size_are_refused(tmp_path):
    body = SIZES + (
        "a = Constant<value_int = 0>() b = Constant<value_int = 9>() r = Range(a, b, m) "
        "y = Cast<to = 1>(r)"
    )
    (reason,) = refusals(ODD, body, "tract", tmp_path)
    assert (
        reason == "tract has no Range with steps of a size by name. Give numbers (static=, inputs=)"
    )
