"""Options for some of many models, from a file: TOML, JSON, or YAML where PyYAML is installed.

The file maps patterns of paths to options, spelled as in Python or on the command line. Tables that
match a model apply in their order, each over those before.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from serde.errors import UsageError, suggest
from serde.io.tables import read_lines, read_tables
from serde.ir.dim_expr import is_number
from serde.passes.cut_inputs import check_mapping, parse_spec
from serde.plugins import Format, read_classes, read_formats
from serde.plugins.command_options import ImageOptions, ToleranceOptions, VerifyOptions
from serde.plugins.option_checks import EXAMPLES, check_options
from serde.plugins.options import Option, check_word, list_words, merge_options

FROM = "from_format", "from"
PARTS_BY_NAME = ("mean", "std", "scale", "layout")
OF_CONVERT = VerifyOptions, ToleranceOptions, ImageOptions


class ModelOptions(NamedTuple):
    """The options of the models whose paths below the source match a pattern."""

    pattern: str
    options: Mapping[str, Any]

    def matches(self, relative: str) -> bool:
        """Whether they are of the model at this path."""
        return fnmatchcase(relative.replace("\\", "/"), self.pattern)


def read_config(config: str | os.PathLike[str] | Mapping[str, Any], into: Format) -> list[
    ModelOptions
]:  # fmt: skip
    """The options in a file, or in a mapping; ``into`` is the format to write.

    Files that they name are found from the folder of the file.

    Raises:
        UsageError: for an option that there is not, or a value that it does not take.
    """
    if isinstance(config, Mapping):
        name, folder, tables = "config", "", config
    else:
        name = os.fspath(config)
        folder, tables = os.path.dirname(os.path.abspath(name)), read_tables(name)
    classes = (*read_classes(), into.write_options, *OF_CONVERT)
    known = {n: o for n, o in merge_options(classes).items() if o.kind != "object"}
    rows = []
    for pattern, options in tables.items():
        place = f"{name}: {pattern!r}"
        if not isinstance(options, Mapping):
            raise UsageError(f"{place} is {options!r}: give a table of options")
        read: dict[str, Any] = {}
        for spelled, value in options.items():
            option, value = _read_option(spelled, value, known, folder, place)
            if option == "images":
                check_mapping(value, f"{place}: images", EXAMPLES["images"])
                value = read.get(option, {}) | (value or {})
            read[option] = value
        try:
            check_options(read, classes)
        except UsageError as error:
            raise UsageError(f"{place}: {error}") from error
        rows.append(ModelOptions(str(pattern), read))
    return rows


def choose_options(tables: Iterable[ModelOptions], relative: str) -> dict[str, Any]:
    """The options of one model."""
    chosen: dict[str, Any] = {}
    for table in tables:
        chosen |= table.options if table.matches(relative) else {}
    return chosen


def _read_option(
    spelled: Any, value: Any, known: Mapping[str, Option], folder: str, place: str
) -> tuple[str, Any]:
    """The name and the value of an option as Python has them."""
    words = {flag.lstrip("-"): name for name, o in known.items() for flag in o.all_flags}
    words |= {name: name for name in known} | dict.fromkeys(FROM, FROM[0])
    words |= dict.fromkeys((*PARTS_BY_NAME, "bgr", "labels"), "images")
    if spelled not in words:
        raise UsageError(f"{place}: there is no option {spelled!r}{suggest(str(spelled), words)}")
    name = words[spelled]
    if name == FROM[0]:
        check_word(f"{place}: {spelled}=", value, list_words(read_formats))
        return name, value
    if name == "images" and spelled != name:
        return name, {spelled: _read_part_of_images(spelled, value, folder, place)}
    if known[name].kind != "file":
        return name, _read_value(known[name], value)
    if not isinstance(value, str):
        raise UsageError(f"{place}: {spelled} is {value!r}: give the name of a file")
    return name, value if "://" in value else os.path.join(folder, value)


def _read_part_of_images(part: str, value: Any, folder: str, place: str) -> Any:
    """What ``--mean`` and the like say: as in Python, or as text of the command line."""
    if not isinstance(value, str):
        return value
    if part == "labels":
        return read_lines(os.path.join(folder, value))
    if part == "bgr":
        return [n.strip() for n in value.split(",")]
    name, _, text = value.rpartition("=")
    try:
        return {name: text if part == "layout" else [float(x) for x in text.split(",")]}
    except ValueError:
        raise UsageError(f"{place}: {part} is {value!r}, and not NAME=X,X,X") from None


def _read_value(option: Option, value: Any) -> Any:
    """A value: as in Python, or as text of the command line."""
    texts = [value] if isinstance(value, str) else value
    is_text = isinstance(texts, list) and all(isinstance(t, str) for t in texts)
    if option.kind == "names" and isinstance(value, str):
        return [n.strip() for n in value.split(",")]
    if option.kind in ("sizes", "renames", "texts") and is_text:
        pairs = [t.partition("=") for t in texts]
        number = option.kind == "sizes"
        return {n: int(v) if number and is_number(v) else v for n, _, v in pairs}
    if option.kind == "types":
        named = [t.partition("=")[::2] for t in texts] if is_text else value
        if isinstance(named, Mapping):
            return {n: _read_type(n, v) for n, v in named.items()}
        return {n: _read_type(n, v) for n, v in named} if is_text else named
    return value


def _read_type(name: str, value: Any) -> Any:
    """A shape, or a shape and an element type, of text such as ``N,3,224,224:float16``."""
    if not isinstance(value, str):
        return value
    _, spec = parse_spec(f"{name}={value}")
    shape = None if spec.shape is None else list(spec.shape)
    return shape if spec.dtype is None else [shape, spec.dtype.value]
