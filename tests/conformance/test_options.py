"""The properties of options find what breaks them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from conformance.options import FAMILIES, bodies, cells, models, precision, rebatch, whole
from conformance.options.cells import Needless, differ, examine, run
from conformance.record import REFUSED, RIGHT, WRONG


def test_there_are_models_enough():
    names = models.list_models()
    assert len(names) == len(set(names)) >= 400
    assert tuple(cells.IS_TRIED) == FAMILIES
    for family, is_tried in cells.IS_TRIED.items():
        assert sum(map(is_tried, names)) >= 200, family


@pytest.mark.parametrize("name", ["image/conv", "tokens/attention", "image/head detect"])
def test_a_network_computes_the_same_of_a_sample_in_any_batch(name):
    model = models.open_model(name)
    assert rebatch.is_possible(model, rebatch.draw_batch(model))


@pytest.mark.parametrize("name", ["tokens/gram", "image/center_over_batch", "tokens/roll_all"])
def test_a_network_that_mixes_samples_is_known_as_such(name):
    model = models.open_model(name)
    assert not rebatch.is_possible(model, rebatch.draw_batch(model))


@pytest.mark.parametrize("wrap", [bodies.in_branch, bodies.in_loop])
def test_nodes_in_bodies_compute_what_they_did(wrap):
    build = whole.list_networks()["image/conv"]
    plain, nested = build(3, 2), wrap(build)(3, 2)
    assert len(nested.nodes) == 1
    factor = 2 if wrap is bodies.in_loop else 1  # of two rounds
    expected = [factor * y for y in run(plain.model(), plain.feeds)]
    assert differ(run(nested.model(), nested.feeds), expected) is None


@pytest.mark.parametrize(
    "got, bound, failure",
    [
        ([1.0, 2.00001], 1e-4, None),
        ([1.0, 2.1], 1e-4, "output 0: off by 5e-02 of scale"),
        ([1.0, np.nan], 1e-4, "output 0: not finite where the source is"),
        ([1.0], 1e-4, "output 0: shape (1,), not (2,)"),
    ],
)
def test_differences_are_told_in_terms_of_the_scale(got, bound, failure):
    assert differ([np.array(got)], [np.array([1.0, 2.0])], bound) == failure


def test_integers_differ_by_any_step_but_where_numbers_are_rounded():
    assert differ([np.array([1, 2])], [np.array([1, 3])]) == "output 0: 50% of integers differ"
    assert differ([np.array([1, 2])], [np.array([1, 3])], 2e-2) is None


def test_outcomes_tell_needless_refusals_and_defects():
    def refuse(model, folder):
        raise Needless("it can")

    def crash(model, folder):
        raise IndexError("no such thing")

    model = models.open_model("image/conv")
    outcomes = [examine(check, model) for check in (refuse, crash, lambda m, f: None)]
    assert [o.kind for o in outcomes] == [REFUSED, WRONG, RIGHT]
    assert outcomes[0].reason == "needless: it can"


def test_rounding_after_each_node_shows_what_a_fused_run_hides():
    """Positions as float16: onnx's evaluator rounds them, whatever a runtime fuses."""
    half = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[1] x) => (float[1] y) {
            a = Cast<to = 10> (x)  b = Cast<to = 1> (a)  y = Sin (b)
        }""")
    feeds = {"x": np.array([4093.3], "float32")}
    assert abs(precision.run_rounded(half, feeds)[0] - np.sin(feeds["x"])) > 0.1
