"""Writes ``formats/pt2/signatures.py``: the schemas of the operators that have rules.

    PYTHON-WITH-TORCH testing/pt2/make_signatures.py NAMES > formats/pt2/signatures.py

``NAMES`` is a file with one operator a line, as ``python -m testing.pt2.operators`` prints them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

HEAD = '''"""The arguments of ATen operators, as PyTorch declares them.

Made by ``testing/pt2/make_signatures.py``; a test compares it with live PyTorch.
"""

# ruff: noqa: E501

GROUPS = {  # signatures, and the operators that have them
'''
TAIL = """}

SIGNATURES = {name: text for text, names in GROUPS.items() for name in names.split()}"""


def print_signature(schema: torch.FunctionSchema) -> str:
    """The arguments of a schema: type, name and default each."""
    parts = []
    for argument in schema.arguments:
        kind = _kind(argument)
        default = f"={_default(argument)}" if argument.has_default_value() else ""
        parts.append(f"{kind} {argument.name}{default}")
    return ", ".join(parts)


def _kind(argument: torch.Argument) -> str:
    text = str(argument.real_type)
    if "Tensor" in text:
        return "Tensor[]" if "List[" in text else "Tensor"
    for name, kind in (("List[int]", "int[]"), ("List[SymInt]", "SymInt[]"),
                       ("List[float]", "float[]"), ("List[bool]", "bool[]")):  # fmt: skip
        if name in text:
            return kind
    return text.removeprefix("Optional[").removesuffix("]")


def _default(argument: torch.Argument) -> str:
    value = argument.default_value
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(str, value)) + "]"
    return str(value)


def main(names: list[str]) -> None:
    """Print the module."""
    groups: dict[str, list[str]] = {}
    for name in sorted({n.removeprefix("complex.") for n in names}):
        op, _, overload = name.partition(".")
        packets = (getattr(torch.ops.aten, form, None) for form in (op, f"{op}_"))  # or in place
        schemas = (getattr(packet, overload or "default", None) for packet in packets)
        schema = next(filter(None, schemas), None)
        if schema is not None:
            groups.setdefault(print_signature(schema._schema), []).append(name)
    sys.stdout.write(HEAD)
    for text, alike in groups.items():
        quoted = f"'{text}'" if '"' in text else f'"{text}"'
        print(f'    {quoted}: "{" ".join(alike)}",')
    print(TAIL)


if __name__ == "__main__":
    main(Path(sys.argv[1]).read_text().split())
