"""Equals may stand in another order; others may not."""

from __future__ import annotations

import numpy as np
import pytest

import serde
from serde.verification import verify_conversion
from testing.onnx_live import save_model


class TestTies:
    """Equals may stand in another order; others may not."""

    SORT = ("g (float[6] x) => (float[K] v, int64[K] i) <int64[1] k = {6}>"
            "{ v, i = TopK<axis=0>(x, k) }")  # fmt: skip
    # As SORT, but equals in the order of their indices from the last to the first.
    BACKWARDS = ("g (float[6] x) => (float[K] v, int64[K] i) <int64[1] k = {6}, int64[1] s = {5},"
                 "int64[1] e = {-7}, int64[1] a = {0}, int64[1] m = {-1}, int64 five = {5}>"
                 "{ r = Slice(x, s, e, a, m)\n v, j = TopK<axis=0>(r, k)\n i = Sub(five, j) }")  # fmt: skip
    DATA = np.float32([3, 1, 3, 2, 1, 3])

    def test_indices_of_equal_numbers(self, tmp_path):
        paths = (
            save_model(tmp_path / "a.onnx", self.BACKWARDS),
            save_model(tmp_path / "b.onnx", self.SORT),
        )
        for data in (None, {"x": self.DATA}):
            check = serde.verify(*paths, data=data)
            assert check.ok
        assert check.outputs[1].reason == "equals stand in another order"

    @pytest.mark.parametrize("wrong", [[0, 2, 5, 3, 1, 1], [0, 2, 5, 1, 3, 4], [0, 2, 5, 3, 1, 9]])
    def test_other_indices_are_wrong(self, wrong, tmp_path):
        target = save_model(tmp_path / "b.onnx", self.SORT)
        expected = {"v": np.float32([3, 3, 3, 2, 1, 1]), "i": np.int64(wrong)}
        check = verify_conversion(
            target, target, graph=serde.load(target), data={"x": self.DATA}, expected=expected
        )
        assert [o.passed for o in check.outputs] == [True, False]

    # Rows of a detector: class, score, place. Sorted by scores; some are equal.
    ROWS = np.float32([[0, 0.9, 5], [1, 0.8, 2], [0, 0.8, 7], [2, 0.8, 1], [1, 0.3, 4]])

    @pytest.mark.parametrize(
        ("order", "passed"),
        [([0, 1, 2, 3, 4], True), ([0, 3, 1, 2, 4], True), ([0, 2, 1, 3, 4], True),
         ([1, 0, 2, 3, 4], False), ([0, 1, 2, 4, 3], False), ([0, 1, 1, 3, 4], False)],
    )  # fmt: skip
    @pytest.mark.parametrize("columns", [[[0, 1, 2]], [[1], [0, 2]], [[0], [2], [1]]])
    def test_rows_by_their_scores(self, order, passed, columns):
        from serde.verification.ties import count_new_rows

        expected = [self.ROWS[None, :, c] for c in columns]
        got = [self.ROWS[None, order][:, :, c] for c in columns]
        for at in range(len(columns)):
            assert count_new_rows(at, got, expected) == (0 if passed else None)

    @pytest.mark.parametrize(("others", "count"), [(0, 0), (1, 1), (4, 4), (30, None)])
    def test_rows_that_others_suppress(self, others, count):
        """Two boxes of a score change places, and ``others`` of 600 rows are of another class."""
        from serde.verification.ties import count_new_rows

        rng = np.random.default_rng(0)
        expected = rng.uniform(0, 1, (1, 600, 4)).astype(np.float32)
        expected[..., 0] = -np.sort(-expected[..., 0], 1)
        expected[0, 7, 0] = expected[0, 8, 0]
        got = expected.copy()
        got[0, [7, 8]] = expected[0, [8, 7]]
        got[0, 100 : 100 + others, 1] = -1
        assert count_new_rows(0, [got], [expected]) == count
        last = expected[:, :10], got[:, :10]  # as of a detector that sorts its best rows only
        behind = [np.concatenate([x, expected[:, :9]], 1) for x in last]
        if others == 0:
            assert count_new_rows(0, behind[1:], behind[:1]) == 0
        got[0, [7, 8]] = expected[0, [7, 8]]  # in the source's order, the classes are wrong
        assert count_new_rows(0, [got], [expected]) == (None if others else 0)

    def test_boxes_of_equal_scores(self, tmp_path):
        body = ("g (float[1,3,4] boxes, float[1,1,3] scores) => (int64[M,3] y)"
                "<int64 n = {3}> { y = NonMaxSuppression(boxes, scores, n) }")  # fmt: skip
        target = save_model(tmp_path / "b.onnx", body)
        boxes = np.float32([[[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5]]])
        feeds = {"boxes": boxes, "scores": np.float32([[[0.5, 0.9, 0.5]]])}
        for last, passed in (([0, 2], True), ([2, 0], True), ([2, 2], False)):
            expected = {"y": np.int64([[0, 0, 1], *([0, 0, i] for i in last)])}
            check = verify_conversion(
                target, target, graph=serde.load(target), data=feeds, expected=expected
            )
            assert check.ok is passed
