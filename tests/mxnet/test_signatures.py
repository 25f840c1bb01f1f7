"""What the reading rules declare, compared with MXNet's own registry."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

import numpy as np
import pytest

from serde.formats.mxnet.bind.op_names import FIRST_ALIASES
from serde.formats.mxnet.ops import aliases
from serde.formats.mxnet.ops.quantization.matmul import FLAGS
from serde.formats.mxnet.rules import SECOND, changed_rules, parse, reads
from serde.rewrite.rules import Rule
from serde.rewrite.subgraphs import Body
from testing.mxnet.make_registry import (
    FILE,
    LENIENT,
    SECOND_ALIASES,
    SECOND_FILE,
    as_aliases,
    as_json,
    as_lenient,
    as_second_aliases,
    registry,
)
from testing.mxnet_live import live_mxnet

REGISTRY = json.loads(FILE.read_text())
# Attributes that the registry's documentation has wrong: those the operator really takes.
REAL = {
    "_npi_concatenate": {"num_args": "int, required", "axis": "int or None, default=0"},
    "khatri_rao": {"num_args": "int, required"},
    "_linspace": {
        "start": "double, required",
        "stop": "double, required",
        "num": "int, required",
        "endpoint": "boolean, default=1",
        "ctx": "string, default=''",
        "dtype": "string, default='float32'",
    },
}
# Attributes of oneDNN's fused layers; ``layers`` is what the reader makes of the subgraph.
_RANGE = dict.fromkeys(("min_calib_range", "max_calib_range"), "float or None, default=None")
_FLAGS = dict.fromkeys(FLAGS, "boolean, default=0")
REAL["_sg_mkldnn_conv"] = {
    **_RANGE, **_FLAGS, "layers": "string, required", "quantized": "boolean, default=0"
}  # fmt: skip
REAL["_sg_mkldnn_fully_connected"] = REAL["_sg_mkldnn_conv"] | {
    "enable_float_output": "boolean, default=0",
    "channel_wise_quantize": "boolean or None, default=None",
}
REAL |= {
    "_npi_boolean_mask_assign_scalar": {"value": "float, required", "start_axis": "int, required"},
    "_npi_boolean_mask_assign_tensor": {"start_axis": "int, required"},
}
REAL["_npi_norm"] = {
    "ord": "double, default=2",
    "axis": "Shape or None, default=None",
    "keepdims": "boolean, default=0",
    "flag": "int, default=-1",
}
for _name, _attributes in REAL.items():
    REGISTRY[_name]["attributes"] = _attributes
CHANGED = changed_rules(SECOND)
SECOND_REGISTRY = json.loads(SECOND_FILE.read_text())
# Attributes of MXNet 2.0 that its documentation has wrong, or that only its files have.
SECOND_REAL = {
    "Concat": {"num_args": "int, required", "dim": "int or None, default='1'"},
    "_npi_around": {"decimals": "int, default=0", "decimal": "int, default=0"},
    "argsort": {
        "axis": "int or None, default='-1'",
        "is_ascend": "boolean or None, default=None",
        "is_ascend_s": "boolean or None, default=None",
        "dtype": "string, default='float32'",
    },
    "sort": {
        "axis": "int or None, default='-1'",
        "is_ascend": "boolean or None, default=None",
        "is_ascend_s": "boolean or None, default=None",
    },
}
SECOND_REGISTRY["_sg_mkldnn_conv"] = REGISTRY["_sg_mkldnn_conv"]  # whose name is another
for _name, _attributes in SECOND_REAL.items():
    SECOND_REGISTRY[_name]["attributes"] = _attributes
REGISTERED = {
    alias: entry for name, entry in REGISTRY.items() for alias in (name, *entry.get("aliases", ()))
}
for _name, _entry in SECOND_REGISTRY.items():  # what only MXNet 2.0 has
    if _name not in REGISTERED:
        REGISTERED[_name] = _entry
    elif _name not in CHANGED and _name not in REAL and "attributes" in _entry:
        both = _entry["attributes"] | REGISTERED[_name].get("attributes", {})
        REGISTERED[_name] = {**REGISTERED[_name], "attributes": both}
# Names that MXNet 1.9.1 is built without, and where they come from.
OLD = {"WarpCTC": "plugin/warpctc"}
# Where the documentation says nothing of a default that the code has.
UNDOCUMENTED = {("smooth_l1", "scalar"): "1", ("_contrib_gradientmultiplier", "scalar"): "1"}
# Operands that are listed and that no call can give.
UNUSABLE = {"softmin": ["length"], "log_softmax": ["length"]}
# The most operands, where the registry leaves their number open and the code does not, or lists
# those of floats only, without ranges.
MOST = {"Crop": 2, "_sg_mkldnn_selfatt_qk": 3, "_sg_mkldnn_selfatt_valatt": 6}
# Auxiliary states, which the registry does not list for these.
HIDDEN_STATES = {
    "BatchNorm_v1": ["moving_mean", "moving_var"],
    "IdentityAttachKLSparseReg": ["moving_avg"],
}
RULES = [
    *((name, rule, REGISTERED) for name, rule in sorted(reads.rules.items()) if name not in OLD),
    *((name, rule, SECOND_REGISTRY) for name, rule in sorted(CHANGED.items())),
]
IDS = [name if where is REGISTERED else f"{name} of 2.0" for name, _, where in RULES]


def find_default(where: dict[str, Any], name: str, attribute: str) -> tuple[bool, str | None]:
    """Whether an attribute is required, and its default as a text."""
    text = where[name].get("attributes", {})[attribute]
    if (name, attribute) in UNDOCUMENTED:
        return False, UNDOCUMENTED[name, attribute]
    match = re.search(r"default=(.*)$", text)
    return "required" in text, match[1].strip("'") if match else None


def same(ours: object, theirs: object) -> bool:
    """Equal, where the registry prints floats of 32 bits in full."""
    if isinstance(ours, float) and isinstance(theirs, float):
        return bool(np.float32(ours) == np.float32(theirs))
    return ours == theirs


def test_generated_files() -> None:
    live_mxnet()
    assert FILE.read_text() == as_json(registry())
    assert inspect.getsource(aliases) == as_aliases(registry())
    assert LENIENT.read_text() == as_lenient(registry())


def test_generated_files_of_mxnet_2() -> None:
    entries = json.loads(SECOND_FILE.read_text())
    assert SECOND_FILE.read_text() == as_json(entries)
    assert SECOND_ALIASES.read_text() == as_second_aliases(entries)


def test_names() -> None:
    unknown = sorted(set(reads.rules) - set(REGISTERED) - set(OLD))
    assert not unknown
    assert not set(OLD) & set(REGISTERED)


def test_rules_have_the_first_names() -> None:
    """Symbols are read with the names that stand first; a rule of another would never run."""
    assert not set(FIRST_ALIASES) & set(reads.rules)


@pytest.mark.parametrize("name, rule, where", RULES, ids=IDS)
def test_attributes(name: str, rule: Rule, where: dict[str, Any]) -> None:
    expected = set(where[name].get("attributes", ()))
    known = {n for n, a in rule.attributes.items() if a.kind is not Body} | set(rule.only)
    assert not expected - known - rule.ignore, "declared by MXNet, and by no rule"
    assert not known - expected, "declared by the rule only"


@pytest.mark.parametrize("name, rule, where", RULES, ids=IDS)
def test_defaults(name: str, rule: Rule, where: dict[str, Any]) -> None:
    for attribute, declared in rule.attributes.items():
        if declared.kind is Body:
            continue
        required, text = find_default(where, name, attribute)
        assert declared.is_required == required, attribute
        if not required and text is not None:
            assert same(declared.default, parse(declared.kind, text)), attribute
    for attribute, allowed in rule.only.items():
        required, text = find_default(where, name, attribute)
        if not required and text is not None:
            assert same(allowed[0], parse(type(allowed[0]), text)), attribute


@pytest.mark.parametrize("name, rule, where", RULES, ids=IDS)
def test_operands(name: str, rule: Rule, where: dict[str, Any]) -> None:
    listed = [o for o in where[name].get("operands", ()) if o not in UNUSABLE.get(name, ())]
    listed += HIDDEN_STATES.get(name, ())
    most = MOST.get(name, None if where[name].get("variadic") else len(listed))
    assert rule.operands[1] == most, listed
