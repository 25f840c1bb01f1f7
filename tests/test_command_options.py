"""Options of what is done with models."""

from __future__ import annotations

from typing import get_type_hints

import pytest

import serde
from serde.plugins import command_options
from serde.plugins.keywords import list_classes
from serde.plugins.options import Options, list_options

CLASSES = [c for c in vars(command_options).values()
           if isinstance(c, type) and issubclass(c, Options) and c is not Options]  # fmt: skip


@pytest.mark.parametrize("options", CLASSES)
def test_types_are_told_and_messages_know_the_flags(options):
    assert get_type_hints(options).keys() == list_options(options).keys()
    assert options in list_classes()


@pytest.mark.parametrize(("name", "value"), [("rtol", "x"), ("atol", "0")])
def test_tolerances_are_numbers(name, value, tmp_path):
    with pytest.raises(serde.errors.UsageError, match=f"^{name} is .*give a finite number"):
        serde.convert("absent.onnx", tmp_path / "b.onnx", **{name: value})
