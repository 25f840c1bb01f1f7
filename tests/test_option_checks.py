"""Options are checked before any work is done."""

from __future__ import annotations

import pytest

from serde.errors import UsageError
from serde.plugins import get_format
from serde.plugins.option_checks import check_options, read_classes, refuse_unknown
from serde.plugins.options import WriteOptions, list_options


@pytest.mark.parametrize(
    "options, message",
    [
        ({"static": {"N": 0}}, "--static=N=0: the least is 1"),
        ({"static": "N"}, "{'N': 1}"),
        ({"inputs": ["data"]}, r"\{'data': \('N', 3, 224, 224\)\}"),
        ({"outputs": 3}, "outputs"),
        ({"weights": "int3"}, "weights='int3' is not one of"),
        ({"rebatch": -1}, "rebatch|batch"),
        ({"inputs": {"x": (("\udcff", 3), "float32")}}, "--input: '.udcff' has bytes that are no"),
        ({"random": "\udcff"}, "random"),
    ],
)
def test_values_that_mean_nothing(options, message):
    with pytest.raises(UsageError, match=message):
        check_options(options, read_classes())


def test_options_without_a_value_are_none():
    assert check_options({"outputs": ["y"]}, [*read_classes(), WriteOptions]) == {"outputs": ["y"]}


def test_an_option_that_no_format_takes():
    fmt = get_format("onnx")
    known = list_options(fmt.write_options)
    with pytest.raises(UsageError, match="onnx takes no option --entry here; it takes .*opset"):
        refuse_unknown(fmt, ["entry"], known)
    refuse_unknown(fmt, ["opset"], known)
