"""TfIdfVectorizer at opsets without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from serde.errors import Unconvertible
from serde.version_converter.adapters import ngrams
from testing.version_converter.rules import check_rule, rules_of
from testing.version_converter.single import UNKNOWN, Single

RNG = np.random.default_rng(3)
POOL = {"ngram_counts": [0, 4, 10], "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7, 1, 2, 3, 6, 7, 8]}
IN_ORDER = {**POOL, "ngram_indexes": list(range(9))}
SHARED = {**POOL, "ngram_indexes": [8, 3, 2, 2, 10, 5, 1, 7, 4]}  # out of order, two in one place
WEIGHTS = {"weights": [round(float(w), 2) for w in RNG.uniform(0.5, 2, 11)]}
ROWS = (RNG.integers(1, 9, (3, 12)), RNG.integers(1, 9, 9), np.array([6, 7]), np.array([[6], [9]]))


@pytest.mark.parametrize(("version", "op"), rules_of(ngrams))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize("attrs", [
    {**IN_ORDER, "mode": "TF", "lengths": (1, 3), "skips": 0},
    {**IN_ORDER, "mode": "TF", "lengths": (2, 2), "skips": 5},
    {**SHARED, "mode": "TF", "lengths": (1, 1), "skips": 1},
    {**SHARED, "mode": "IDF", "lengths": (1, 2), "skips": 1},
    {**SHARED, "mode": "IDF", "lengths": (2, 3), "skips": 2, **WEIGHTS},
    {**SHARED, "mode": "TFIDF", "lengths": (3, 3), "skips": 1, **WEIGHTS},
    {**SHARED, "mode": "TFIDF", "lengths": (1, 3), "skips": 5, **WEIGHTS},
], ids=lambda a: f"{a['mode']}-{a['lengths']}-{a['skips']}")  # fmt: skip
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_counted(attrs: dict[str, Any], kind: type) -> None:
    how = {n: v for n, v in attrs.items() if n not in ("lengths", "skips")}
    how["min_gram_length"], how["max_gram_length"] = attrs["lengths"]
    for rows in ROWS:
        case = Single(
            "TfIdfVectorizer", (rows.astype(kind),), {**how, "max_skip_count": attrs["skips"]}
        )
        case.check((7, 8), [UNKNOWN])


def test_strings_are_refused() -> None:
    how = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0,
           "ngram_counts": [0], "ngram_indexes": [0, 1], "pool_strings": ["a", "b"]}  # fmt: skip
    with pytest.raises(Unconvertible, match="no operator compares strings; opset 9"):
        Single("TfIdfVectorizer", (np.array(["a", "c"], object),), how).at(8, UNKNOWN)
