"""Options as callers give them, checked before any work is done."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np

from serde.errors import UsageError, flags_are_known
from serde.passes.batch.request import read_request
from serde.passes.cut_inputs import (
    check_integer,
    check_mapping,
    check_names,
    check_number,
    check_size,
    spec_of,
)
from serde.plugins import Format, read_classes, write_classes
from serde.plugins.options import HUB, Option, merge_options

EXAMPLES = {
    "types": "{'data': ('N', 3, 224, 224)}", "sizes": "{'N': 1}", "values": "{'sr': 16000}",
    "renames": "{'data': 'image'}", "texts": "{'author': 'me'}",
    "images": "{'mean': {'data': 127.5}}",
}  # fmt: skip
SURROGATE = re.compile("[\ud800-\udfff]")


def check_options(options: Mapping[str, Any], classes: Iterable[type]) -> dict[str, Any]:
    """The options that are given.

    Raises:
        UsageError: for a value that can mean nothing, before any work is done.
    """
    known = merge_options(classes)
    opts = {n: value for n, value in options.items() if value is not None}
    for name in opts.keys() & known.keys():
        check_option(opts[name], known[name])
        if known[name].kind == "sizes":
            opts[name] = {dim: int(size) for dim, size in opts[name].items()}
    return opts


def refuse_unknown(fmt: Format, names: Iterable[str], known: Collection[str]) -> None:
    """Raise UsageError for options that a format does not take."""
    unknown = sorted(set(names) - set(known))
    if unknown:
        every = merge_options([*read_classes(), *write_classes()])

        def spell(names: Iterable[str]) -> str:
            shown = (n for n in names if every[n].kind != "object" or not flags_are_known.get())
            return ", ".join(every[n].all_flags[0] for n in shown)

        listed = spell(sorted(set(known) - HUB)) or "none"
        raise UsageError(f"{fmt.name} takes no option {spell(unknown)} here; it takes {listed}")


def check_option(value: Any, option: Option) -> None:
    """Refuse a value that can mean nothing, with an example of what the option takes."""
    flag = option.all_flags[0]
    if option.kind == "names":
        check_names(value, flag)
    option.check_choice(value)
    if option.kind not in ("file", "names"):
        _check_text(value, flag)
    if option.kind in EXAMPLES:
        check_mapping(value, flag, EXAMPLES[option.kind])
    if option.kind == "integer":
        check_integer(value, flag, option.least)
    elif option.kind == "number":
        check_number(value, flag, option.least)
    elif option.kind == "flag" and not isinstance(value, (bool, np.bool_)):
        raise UsageError(f"{flag}={value!r} is neither True nor False")
    elif option.kind == "text" and not isinstance(value, str) and not option.choices:
        raise UsageError(f"{flag}={value!r} is no text: give it in quotes")
    elif option.kind == "batch":
        read_request(value)
    elif option.kind in CHECKS_OF_ENTRIES:
        for name, entry in value.items():
            CHECKS_OF_ENTRIES[option.kind](name, entry, flag)


def _check_size(dim: Any, size: Any, flag: str) -> None:
    check_integer(-1 if size is None else size, f"{flag}={dim}", 1)
    check_size(size, f"{flag}={dim}")


def _check_texts(key: Any, text: Any, flag: str) -> None:
    if not isinstance(key, str) or not isinstance(text, str):
        raise UsageError(f"{flag}: {key!r}: {text!r} are no texts")


# What each name of a mapping may have.
CHECKS_OF_ENTRIES: Mapping[str, Callable[[Any, Any, str], object]] = {
    "types": lambda name, spec, flag: spec_of(name, spec), "sizes": _check_size,
    "renames": _check_texts, "texts": _check_texts,
}  # fmt: skip


def _check_text(value: Any, flag: str, depth: int = 3) -> None:
    """Refuse names that no file can hold: a terminal of another encoding gives such ones."""
    if isinstance(value, str) and SURROGATE.search(value):
        raise UsageError(f"{flag}: {value!r} has bytes that are no UTF-8: give it in UTF-8")
    if isinstance(value, Mapping):
        value = (*value, *value.values())
    if depth and isinstance(value, (list, tuple)):
        for part in value:
            _check_text(part, flag, depth - 1)
