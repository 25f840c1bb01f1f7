"""Names of modules, arrays and variables: identifiers, as a person would choose them."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from itertools import takewhile

# Attributes of nn.Module, which members may not hide.
RESERVED = frozenset(
    "T_destination add_module apply bfloat16 buffers call_super_init children compile cpu cuda "
    "double dump_patches eval extra_repr float forward get_buffer get_extra_state get_parameter "
    "get_submodule half ipu load_state_dict modules mtia named_buffers named_children "
    "named_modules named_parameters parameters register_backward_hook register_buffer "
    "register_forward_hook register_forward_pre_hook register_full_backward_hook "
    "register_full_backward_pre_hook register_load_state_dict_post_hook "
    "register_load_state_dict_pre_hook register_module register_parameter "
    "register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state "
    "set_submodule share_memory state_dict to to_empty train training type xpu zero_grad".split()
)
# What the written source means by names of its own, and builtins that it calls.
GLOBALS = frozenset(
    "self torch nn json F Path TYPES load super getattr range len int float bool tuple list max "
    "min".split()
)
LONGEST = 60  # letters of a name


def to_identifier(text: str, fallback: str = "x") -> str:
    """Letters of ``text`` as an identifier of ASCII that is no keyword."""
    name = re.sub(r"[^0-9A-Za-z_]+", "_", text).strip("_")[:LONGEST] or fallback
    if name[0].isdigit():
        name = f"{fallback}_{name}"
    return f"{name}_" if keyword.iskeyword(name) or name.startswith("__") else name


def to_class_name(text: str) -> str:
    """``text`` as classes are called, in capitals: ``resnet18_v1`` becomes ``Resnet18V1``."""
    words = re.split(r"[^0-9A-Za-z]+", text)
    name = "".join(w[:1].upper() + w[1:] for w in words if w)[:LONGEST] or "Model"
    if name[0].isdigit() or name in GLOBALS:
        return f"Model{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


class Scope:
    """Names in use in one place; each is given out once."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self.used = set(reserved)
        self._last: dict[str, int] = {}  # numbers up to it are in use behind a name

    def claim(self, name: str) -> str:
        """``name``, with the lowest number behind it that is free where it is in use."""
        free, number = name, self._last.get(name, 1)
        while free in self.used:
            number += 1
            free = f"{name}_{number}"
        if free != name:
            self._last[name] = number
        self.used.add(free)
        return free

    def release(self, name: str) -> None:
        """Let a name be given out again."""
        self.used.discard(name)
        stem, _, number = name.rpartition("_")
        if number.isdecimal() and stem in self._last:
            self._last[stem] = min(self._last[stem], max(int(number) - 1, 1))


def shorten(names: Iterable[str]) -> dict[str, str]:
    """Layers' names without what all of them begin with, and without ``_fwd`` and slashes.

    Gluon names the layers of a block after it: ``resnetv10_conv0_fwd`` becomes ``conv0``.
    """
    every = sorted(set(names))
    pairs = zip(every[0], every[-1], strict=False) if len(every) > 1 else ()
    shared = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    start = max(shared.rfind(mark) + 1 for mark in "_/.")
    return {name: _strip(name[start:]) or _strip(name) for name in every}


def _strip(name: str) -> str:
    return re.sub(r"(_fwd)$", "", name).strip("_/. ")
