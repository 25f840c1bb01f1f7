"""Options, each declared once, as an attribute of a class.

The keywords of Python's functions and their signatures, the options of the ``serde`` command, its
completion and the tables of docs/reference/cli.md are made of these declarations. The hub's own are
here; a format extends ``ReadOptions`` and ``WriteOptions`` by what it takes itself, and names its
classes in its ``Format``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

from serde.errors import UsageError, suggest
from serde.passes.optional import OPTIONAL

# What a value is, and so how it is checked and read from text. Those of the second line are
# mappings by name; given several times on the command line.
Kind = Literal[
    "flag", "text", "file", "integer", "number", "names",
    "types", "sizes", "values", "renames", "texts", "batch", "images",
    "object",
]  # fmt: skip
METAVARS: Mapping[str, str] = MappingProxyType(
    {
        "file": "FILE", "integer": "N", "number": "X", "names": "A,B", "batch": "[NAME=AXIS:]N",
        "types": "NAME=DIMS[:dtype]", "sizes": "NAME=SIZE", "values": "NAME=VALUE",
        "renames": "OLD=NEW", "texts": "KEY=TEXT",
    }
)  # fmt: skip
Words = Sequence[str] | Callable[[], Sequence[str] | Mapping[str, str]]
# Groups of options in the help text.
VERIFICATION, IMAGES, LIMITS = "Verification", "Images", "Limits"


@dataclass(eq=False)
class Option:
    """What is declared of an option beside its type.

    Of an instance of the class that declares it, the attribute is the value that was given, or the
    default.

    Attributes:
        help: one sentence, for ``--help`` and the reference page.
        details: what the page says after it, in Markdown.
        kind: what a value is; ``object`` is for Python only.
        metavar: what stands for the value in the help text.
        choices: the words it takes, where it takes only some, or a function that lists them, as
            what is meant by each word that users may try; they complete what is typed.
        is_open: whether other words than these are taken too.
        least: the smallest number it takes.
        is_checked: whether a check takes it, as what can be written depends on it.
        is_run: whether a model runs with it as it is: it tells what of the files is meant.
        is_request: whether it asks for a change of the result: it is told where there is none.
        flags: how the command spells it; ``--`` and the name with hyphens if left out.
        default: the value where none is given.
        alone: the word that the option means where none of its choices follows it.
        group: the part of the help text that lists it.
        name: what Python calls it.
    """

    help: str
    details: str = ""
    kind: Kind = "text"
    metavar: str = ""
    choices: Words = ()
    is_open: bool = False
    least: int | None = None
    is_checked: bool = False
    is_run: bool = False
    is_request: bool = False
    flags: tuple[str, ...] = ()
    default: Any = None
    alone: str = ""
    group: str = ""
    name: str = field(default="", init=False)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, options: Options | None, owner: type) -> Any:
        return self if options is None else options.values.get(self.name, self.default)

    @property
    def all_flags(self) -> tuple[str, ...]:
        """How the command spells it, the usual way first."""
        return self.flags or (f"--{self.name.replace('_', '-')}",)

    def list_choices(self) -> Mapping[str, str]:
        """The words that it takes, by these and others that users may try."""
        return list_words(self.choices)

    def check_choice(self, value: Any) -> None:
        """Refuse what is none of the words.

        Raises:
            UsageError: listing them, with the one that may be meant.
        """
        if not self.choices or self.is_open or (self.alone and isinstance(value, bool)):
            return
        words = value if self.kind == "names" and not isinstance(value, str) else [value]
        for word in words:
            check_word(f"{self.all_flags[0]}=", word, self.list_choices())


def list_words(words: Words) -> Mapping[str, str]:
    """Words, or those that a function lists, by these and by others that users may try."""
    listed = words() if callable(words) else words
    return listed if isinstance(listed, Mapping) else {word: word for word in listed}


def check_word(what: str, value: Any, words: Mapping[str, str]) -> None:
    """Refuse a value that is none of some words; ``what`` begins the message.

    Raises:
        UsageError: listing them, with the one that may be meant.
    """
    known = tuple(dict.fromkeys(words.values()))
    if not isinstance(value, str) or value not in known:
        hint = suggest(str(value), words)
        raise UsageError(f"{what}{value!r} is not one of {', '.join(known)}{hint}")


def option(help: str, details: str = "", **declared: Any) -> Any:
    """The declaration of an option, in a class of options; see ``Option``."""
    return Option(help, details, **declared)


class Options:
    """Some options, and the values that are given for them."""

    def __init__(self, values: Mapping[str, Any] = MappingProxyType({})) -> None:
        self.values = {n: v for n, v in values.items() if v is not None}


def list_options(options: type) -> Mapping[str, Option]:
    """The options of a class by name, those of its bases first."""
    return _list_options(options)


@cache
def _list_options(options: Any) -> Mapping[str, Option]:
    return {
        name: value
        for each in reversed(options.__mro__)
        for name, value in vars(each).items()
        if isinstance(value, Option)
    }


def merge_options(classes: Iterable[type]) -> dict[str, Option]:
    """The options of several classes by name; the first that declares a name counts."""
    merged: dict[str, Option] = {}
    for each in classes:
        merged = {**merged, **{n: o for n, o in list_options(each).items() if n not in merged}}
    return merged


class SkipOptions(Options):
    """Which optimizations are left out, as the source is read and the result written."""

    skip: Sequence[str] | None = option(
        "Optimizations to leave out: fold_bias,make_gemms.",
        "[change-an-onnx-model.md](../how-to/change-an-onnx-model.md#leave-out-an-optimization) "
        "lists them.", kind="names", choices=tuple(OPTIONAL), is_request=True,
    )  # fmt: skip


class ReadOptions(SkipOptions):
    """What every source is read with."""

    inputs: Mapping[str, Any] | None = option(
        "An input's shape: data=N,3,224,224.",
        "With a type, `data=N,3,H,W:float16`. `?` or `-1` is an unknown size. May be given several "
        "times. Shapes of labels may be among them; the result has no labels. In Python a mapping "
        "to shapes, `(shape, dtype)` pairs, or arrays whose shape and type are taken.",
        kind="types", flags=("--input",), is_run=True,
    )  # fmt: skip
    outputs: Sequence[str] | None = option(
        "Cut the model at these values or layers: fc1, fc1_output.",
        "Layers, arrays and inputs that these do not depend on are not looked at. Outputs that "
        "need labels (MXNet) are kept only if they are named here. In Python, `outputs`.",
        kind="names", flags=("--outputs", "--cut-outputs"), is_run=True,
    )  # fmt: skip
    cut_inputs: Sequence[str] | None = option("Begin the model at these values.", kind="names")
    set_inputs: Mapping[str, Any] | None = option(
        "Fix an input to a value: sr=16000.",
        "It is folded: `training=false`, `lengths=[4,7]`, `table=file.npy`. A single number fills "
        "an input of static shape. The input is no input of the result. May be given several "
        "times.",
        kind="values", flags=("--set-input",),
    )  # fmt: skip
    edits: Any = option(
        "Edits of layers, by their names: TOML, JSON or YAML.",
        "Attributes, the operator, and constants of the source are replaced before it is "
        "converted. In Python a file, or a mapping. See "
        "[change-an-onnx-model.md](../how-to/change-an-onnx-model.md#edit-single-layers).",
        kind="file",
    )  # fmt: skip
    static: Mapping[str, int] | None = option(
        "A number for a dimension that has a name.",
        "Dimensions that are expressions of names, such as `past + 1`, become numbers too. May be "
        "given several times.",
        kind="sizes",
    )
    rebatch: int | str | Mapping[str, Any] | None = option(
        "A batch size, or a name for it, in place of the one baked into the model.",
        "It replaces that in constant shapes too. The batch is the first axis of all inputs; "
        "`state=1:N` names another for an input, `state=1` beside a batch for the others, "
        "`rate=none` an input without one; outputs likewise. May be given several times. In "
        "Python a mapping, `{'*': 'N', 'state': (1, 'N'), 'rate': None}`. See "
        "[change-an-onnx-model.md](../how-to/change-an-onnx-model.md).",
        kind="batch",
    )  # fmt: skip
    dequantize: bool | None = option(
        "Floats instead of quantized numbers.",
        "Operators on integers become those on floats, weights are dequantized, and tensors are "
        "no longer rounded. Numbers beyond the range of a quantization stay cut off, by a Clip, "
        "as quantizers leave out a Relu or Clip before it.",
        kind="flag",
    )  # fmt: skip
    fold_batchnorm: bool | None = option(
        "Make BatchNormalization part of the weights of Conv, ConvTranspose and Gemm, and merge "
        "constant factors.",
        "Runtimes that optimize what they load do so themselves; weights are then no longer those "
        "of the source.", kind="flag",
    )  # fmt: skip
    fp32: bool | None = option(
        "Weights and arithmetic of float16, bfloat16 and float64 in float32, inputs and outputs "
        "too.",
        "For runtimes that compute in float32 only. Weights of fewer bits keep their numbers, "
        "those of float64 are rounded.",
        kind="flag",
    )  # fmt: skip
    fp16: bool | None = option(
        "Weights and arithmetic in float16.",
        "Inputs and outputs stay float32. So do counts, places and angles, numbers that may leave "
        "the range of float16, and operators that have no float16, in subgraphs too. See "
        "[reduced-precision.md](../how-to/reduced-precision.md).",
        kind="flag",
    )  # fmt: skip
    fp16_keep: Sequence[str] | None = option(
        "Operators of ONNX that stay in float32 with --fp16.", kind="names", metavar="OP,OP"
    )
    fp16_io: bool | None = option(
        "Inputs and outputs in float16 with --fp16.",
        "Inputs that are indices, places, lengths or angles stay float32.", kind="flag",
    )  # fmt: skip
    weights: str | None = option(
        "Large weights in fewer bits: fp16, bf16 or int8.",
        "The model makes float32 of them, and computes in that. `int8` is symmetric, with a scale "
        "for each channel. Weights are those of convolutions, products, recurrent layers and "
        "look-ups.",
        choices=("fp16", "bf16", "int8"),
    )  # fmt: skip
    training: bool | None = option(
        "Keep what training needs: Dropout, and how fast statistics of BatchNormalization move.",
        "PyTorch modules have it unless they are written with `--inference`.", kind="flag",
        is_request=True,
    )  # fmt: skip
    copy: bool | None = option(
        "Read weights into memory at once; their files may then change.",
        "Otherwise weights stay in their files, and reading one that became shorter meanwhile is "
        "an error.", kind="flag",
    )  # fmt: skip
    max_growth: int | None = option(
        "MiB that inflated, sparse and computed weights may take, where that is much for the file.",
        "256 and 64 times what is read if left out: a small file cannot fill a disk. A graph may "
        "have 1,024 values a MiB.",
        kind="integer", metavar="MIB", least=1, is_run=True,
    )  # fmt: skip


class WriteOptions(SkipOptions):
    """What every result is written with."""

    rename: Mapping[str, str] | None = option(
        "A new name for an input or an output.",
        "May be given several times; names can be exchanged.", kind="renames",
    )  # fmt: skip
    hash_weights: bool | None = option(
        "Enter a SHA-256 of the weights into the result's metadata and the report.",
        "`serde verify-hash` compares them with it.", kind="flag", flags=("--hash",),
    )  # fmt: skip


class ParamsOptions(Options):
    """For formats whose weights lie in a file of their own."""

    params: Any = option(
        "The parameters, where they are not beside the source.",
        "In Python a file, or a mapping of names to arrays.",
        kind="file",
        is_run=True,
    )
    ignore_extra: bool | None = option(
        "Allow arrays that belong to no variable where a variable without one may have been meant.",
        "Others are left out with a note.", kind="flag", is_run=True,
    )  # fmt: skip


class RuleOptions(Options):
    """For formats whose operators are rewritten by rules that callers may give their own of."""

    rules: Any = option("Rules by operator, taken before those there are.", kind="object")


class RandomOptions(Options):
    """For formats with operators that draw random numbers."""

    random: str | None = option(
        "Operators that draw random numbers: refuse (the default), onnx or input.",
        "`onnx`: the runtime draws them. `input`: they are computed from noise that is an input, "
        "`layer/uniform` (from 0 to 1) or `layer/normal` (of mean 0 and variance 1).",
        choices=("refuse", "onnx", "input"), is_request=True,
    )  # fmt: skip


class IntegerOptions(Options):
    """For formats with integer layers."""

    integers: str | None = option(
        "Integer layers that round as the framework does (exact), or of real numbers (qdq).",
        "`exact`: the integers are those of the framework, bit for bit. Of MXNet: QLinearConv and "
        "QLinearMatMul (with the profiles of compilers, which look for it, DequantizeLinear, layer "
        "and QuantizeLinear in units of 1), which round as oneDNN does, and integer products where "
        "ONNX Runtime has no kernel (sums of layers); floats that become integers again are added "
        "up in its order, from opset 10 on. Of Relay: integer products, and TVM's fixed-point "
        "arithmetic in operators on integers. `qdq`: DequantizeLinear, layer and QuantizeLinear "
        "with the numbers that integers stand for, as compilers for hardware look for. Of MXNet, "
        "one in some 100,000 integers is rounded the other way, and spreads; of TVM, which "
        "rounds halves up, those in the middle. `exact` is the default.",
        choices=("exact", "qdq"), is_request=True,
    )  # fmt: skip


class FunctionOptions(Options):
    """For formats whose files have functions."""

    functions: str | None = option(
        "Which functions of the source the file has: those with a name, all, or none.",
        "See below.", choices=("keep", "all", "inline"),
    )  # fmt: skip


HUB = frozenset({*list_options(ReadOptions), *list_options(WriteOptions)})


def names_of(classes: Iterable[type]) -> frozenset[str]:
    """The names of all options of several classes."""
    return frozenset(merge_options(classes))
