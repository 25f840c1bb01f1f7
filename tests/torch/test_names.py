"""Names of classes, members and variables."""

from __future__ import annotations

import keyword

import pytest

from serde.formats.torch.source.names import (
    GLOBALS,
    RESERVED,
    Scope,
    shorten,
    to_class_name,
    to_identifier,
)

HOSTILE = ["", "class", "0", "3conv", "a b", "x'); import os; ('", "a\nb", "é", "__init__", "_", "a.b/c",
           "None", "x" * 500]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_gives_an_identifier(text: str) -> None:
    for name in (to_identifier(text), to_class_name(text)):
        assert name.isidentifier() and name.isascii() and not keyword.iskeyword(name)
        assert not name.startswith("__") or name.endswith("_")


def test_members_do_not_hide_those_of_nn_module() -> None:
    scope = Scope(RESERVED)
    assert [scope.claim("train"), scope.claim("conv"), scope.claim("conv")] == [
        "train_2", "conv", "conv_2",
    ]  # fmt: skip
    assert {"self", "torch", "F"} <= GLOBALS


def test_layers_lose_what_they_all_begin_with() -> None:
    names = ["resnetv10_conv0_fwd", "resnetv10_stage1_conv0_fwd", "resnetv10_dense0_fwd"]
    assert [*shorten(names).values()] == ["conv0", "dense0", "stage1_conv0"]
    assert shorten(["fc1"]) == {"fc1": "fc1"}
    assert shorten(["conv1", "conv2"]) == {"conv1": "conv1", "conv2": "conv2"}
