"""The checks of the sweep over partitions: each finds what it is there to find."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest

from conformance.backend_files import find_violations
from conformance.part_checks import check_parts, difference, has_same_bits
from conformance.part_runs import Model
from conformance.partitions import judge, summarize_lists
from serde.backends.description import get_backend
from serde.backends.partition import partition
from serde.legalize.target import Target
from testing.onnx_live import ir_of, model_of

CONV = (
    "g (float[1,2,5,5] x) => (float[1,2,3,3] y) <float[2,2,3,3] w = {%s}>"
    " { y = Conv<kernel_shape=[3,3]%s>(x, w) }"
)
WEIGHT = ", ".join(["0"] * 36)
PLAIN = CONV % (WEIGHT, "")
VIOLATIONS = [  # keys of the operator, the model, and what is found, nothing where it is taken
    ("", PLAIN, None),
    ("", "g (float[2] x) => (float[2] y) { y = Relu(x) }", "Relu is not listed"),
    ("ranks = 3", PLAIN, "X has rank 4 for 3"),
    ("ranks = { W = [4] }", PLAIN, None),
    ("types = ['float16']", PLAIN, "x is of float32, T has ['float16']"),
    ("attributes.group = [2]", PLAIN, "group=[1] for [2]"),  # a default
    ("attributes.dilations = [1]", CONV % (WEIGHT, ", dilations=[1,2]"), "dilations=[1, 2] for [1]"),
    ("attributes.pads = { symmetric = true }", CONV % (WEIGHT, ", pads=[0,0,1,1]"),
     "pads=[0, 0, 1, 1] for {'symmetric': True}"),
    ("attributes.kernel_shape = { most = 2 }", PLAIN, "kernel_shape=[3, 3] for {'most': 2}"),
    ("constant = ['W']", PLAIN, None),
    ("constant = ['X']", PLAIN, "X is not constant"),
    ("zero = ['W']", PLAIN, None),
    ("zero = ['W']", CONV % (WEIGHT.replace("0", "1", 1), ""), "W is not zero"),
    ("absent = ['W']", PLAIN, "W is there"),
    ("sizes.X.2 = { multiple_of = 2 }", PLAIN, "X has the shape [1, 2, 5, 5]"),
    ("sizes.X.elements = { most = 49 }", PLAIN, "X has the shape [1, 2, 5, 5]"),
    ("dynamic_shapes = false", PLAIN.replace("float[1,", "float[N,"), "x has the shape ['N', 2"),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "body", "reason"), VIOLATIONS)
def test_what_a_description_does_not_take_is_found(tmp_path, keys, body, reason):
    description, path = tmp_path / "b.toml", tmp_path / "m.onnx"
    listed = f'name = "b"\nopset = 17\n[[operators]]\nnames = ["Conv"]\n{keys}\n'
    description.write_text(listed)
    onnx.save(model_of(body, 17), path)
    reasons = list(find_violations(path, description))
    assert not reasons if reason is None else reason in reasons[0]


def test_element_types_and_the_opset_are_checked(tmp_path):
    description, path = tmp_path / "b.toml", tmp_path / "m.onnx"
    onnx.save(model_of(PLAIN, 17), path)
    head = 'name = "b"\nopset = 13\nelement_types = ["float16"]\n'
    description.write_text(f'{head}[[operators]]\nnames = ["Conv"]\n')
    opset, dtype, *_ = find_violations(path, description)
    assert opset == "opset {'': 17} for 13" and "x is of float32" in dtype


def test_operators_and_the_order_of_parts_are_checked():
    result = partition(ir_of("g (float[2] x) => (float[2] y) { a = Relu(x)\n y = Erf(a) }"),
                       Target("t", 21, {"Relu": {}}))  # fmt: skip
    check_parts(result)
    with pytest.raises(ValueError, match="remainder_0 reads 'a' before it is computed"):
        check_parts(replace(result, parts=result.parts[::-1]))
    with pytest.raises(ValueError, match="accelerator_0 has Relu, which is not taken"):
        check_parts(replace(result, backend=get_backend(Target("t", 21, {"Erf": {}}))))


def test_outputs_are_compared():
    ones = np.ones(3, np.float32)
    assert difference(ones, ones) == 0 and has_same_bits(ones, ones)
    assert difference(ones * 2, ones) == 1 and not has_same_bits(-0 * ones, 0.0 * -ones)
    nan = np.array([np.nan, 2], np.float32)
    assert difference(nan, nan) == 0 and difference(nan, nan[::-1]) == np.inf
    for other in (ones.astype(np.float64), ones[:2], np.arange(3)):
        assert difference(other, ones) == np.inf and not has_same_bits(other, ones)
    assert difference([ones], [ones]) == 0 and difference(np.arange(2), np.arange(1, 3)) == np.inf


def test_a_model_is_run_whole_and_in_parts():
    body = (
        "g (bool c, float[2,3] x) => (float[2,3] y) { a = Relu(x)\n b = Erf(a)\n d = If (c) <"
        "then_branch = t () => (float[2,3] p) { q = Relu(b)\n p = Erf(q) },"
        "else_branch = e () => (float[2,3] r) { r = Neg(b) }>\n y = Add(a, d) }"
    )
    feeds = {"c": np.array(True), "x": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)}
    model = Model(ir_of(body), feeds)
    assert not model.failure
    row = model.examine(get_backend("openvino"))
    assert judge(row).kind == "right" and row["same bits"] and row["parts"] == 1
    known: dict = {}
    rows = {f"list {n}": model.examine_list(n, known) for n in range(4)}
    assert summarize_lists(rows)["lists"]["same bits"] == 4
    assert judge({"error": 2e-5}).kind == judge({"error": 0, "bits differ": True}).kind == "wrong"
    model.in_memory = [model.in_memory[0].numpy() + 1]
    assert judge(model.examine_list(0, {})).kind == "wrong"
