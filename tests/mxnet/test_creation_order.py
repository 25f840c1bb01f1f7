"""The order of blocks, found with the layers of a file."""

from __future__ import annotations

import pytest

from serde.formats.mxnet.bind.creation_order import CreationOrders, sort_by_numbers


def paths(text: str) -> list[tuple[str, ...]]:
    return [tuple(path.split("_")) for path in text.split()]


# Layers as they are used, those of a file, and the orders that fit where kinds and shapes do not
# tell layers apart.
ORDERS: dict[str, tuple[str, str, list[str]]] = {
    "numbers": ("n_d1 n_d10 n_d2 n_d0", "a b c d", ["n_d0 n_d1 n_d2 n_d10"]),
    "a block of many": ("s_d0 s_d1 d0", "a b_0 b_1", ["d0 s_d0 s_d1"]),
    "a block of blocks": (
        "t_d0 t_d1 s_d0 s_d1 s_d2", "b_0 b_1 b_2 a_0 a_1", ["s_d0 s_d1 s_d2 t_d0 t_d1"],
    ),
    "blocks without a name": (
        "d0 d1 d2 t0_d0 t0_d1", "b_0 b_1 b_2 t_0 t_1", ["d0 d1 d2 t0_d0 t0_d1"],
    ),
    "two classes": ("a0 b0", "x y", ["a0 b0", "b0 a0"]),
    "torn blocks": ("s_d0 s_d1 t_d0", "a_0 b_0 b_1 b_2", []),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERS)
def test_orders(name: str) -> None:
    used, saved, expected = ORDERS[name]
    places = paths(saved)
    found = CreationOrders(paths(used), places, lambda layer, at: 0 if at < len(places) else None)
    orders = [] if len(paths(used)) != len(places) else found.find()
    assert sorted(orders) == sorted(map(paths, expected))


def test_layers_that_fit_at_one_place() -> None:
    kinds = {"a0": 1, "b0": 0, "b1": 2}
    orders = CreationOrders(
        paths("a0 b0 b1"), paths("x y z"), lambda layer, at: 0 if kinds[layer[0]] == at else None
    )
    assert orders.find() == [paths("b0 a0 b1")]


def test_too_many_orders_are_given_up() -> None:
    names = " ".join(f"{chr(97 + i % 26)}{'x' * (i // 26)}" for i in range(60))
    orders = CreationOrders(paths(names), paths(names), lambda layer, at: 0)
    assert orders.find() == []


def test_sorted_by_numbers() -> None:
    order = sort_by_numbers(paths("n_d1 n_c0 n_d0 n"))
    assert list(order) == paths("n n_d0 n_c0 n_d1")
