"""Likelihoods of sequences."""

from __future__ import annotations

from testing.mxnet.cases import case, f32, f64, i32, ints, of, operator_test, refuses

X = f32(5, 2, 4)
BY_DATA, BY_LABEL = {"use_data_lengths": True}, {"use_label_lengths": True}


def ctc(*xs, **attrs):
    return case("CTCLoss", *xs, **attrs).but(outputs=1)


def events(samples, count, kinds, lengths, seed=0):
    return case(
        "_contrib_hawkesll",
        f32(samples, kinds, low=0.1, seed=seed),
        f32(kinds, low=0.1, seed=seed),
        f32(kinds, low=0.5, seed=1),
        f32(samples, kinds, low=0.1, seed=2),
        f32(samples, count, low=0.1, seed=3),
        i32(samples, count, low=0, high=kinds - 1),
        of(lengths),
        f32(samples, low=10, high=12),
    ).but(outputs=2)


CASES = [
    ctc(X, of([[1, 2], [3, 0]])),
    ctc(X, of([[1, 2], [0, -1]]), blank_label="last"),
    ctc(X, of([[1, 1], [3, 0]]), of([4, 5]), **BY_DATA),
    ctc(X, of([[1, 1], [3, 2]]), of([2, 1]), **BY_LABEL),
    ctc(X, of([[1, 1], [3, 2]]), of([4, 2]), of([2, 1]), **BY_DATA, **BY_LABEL),
    ctc(X[:2], of([[1, 1], [3, 2]])),  # no time for the first
    ctc(X, of([[0, 0], [3, 2]])),  # no label at all
    ctc(X, i32(2, 3, low=1, high=3)),
    ctc(f32(12, 3, 6) * 3, of([[1, 1, 2, 5], [5, 4, 0, 0], [3, 3, 3, 0]])),
    refuses("CTCLoss", X, of([[1], [2]]), blank_label="middle", says="'middle' is unknown"),
    events(2, 5, 3, [5, 4]),
    events(1, 1, 1, [1]),
    events(3, 7, 2, [7, 3, 0]),
    case("softmax_cross_entropy", f32(4, 3), ints(4, high=2)),
    case("softmax_cross_entropy", f32(1, 5), ints(1, high=4)),
    case("softmax_cross_entropy", f64(3, 5), ints(3, high=4).astype("float64")),
    case("softmax_cross_entropy", of([[100, 0, 0], [0, 30, 0], [5, 5, -12]]), of([1, 0, 2])),
    case("softmax_cross_entropy", of([[99, 0], [0, 9]], "float64"), of([1, 0], "float64")),
]
test_likelihoods = operator_test(CASES)
