"""The options of the ``serde`` command, and how their values are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import click
from click.core import ParameterSource

from serde.cli import sandbox

INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
ARGUMENTS = "serde.arguments"  # of the command, for a process that is to run it again


def _by_name(parsed: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Options of one kind by the name each begins with; refuses a name given twice."""
    found: dict[str, Any] = {}
    for name, value in parsed:
        if name in found:
            raise click.BadParameter(f"{name!r} is given twice")
        found[name] = value
    return found


def _inputs(context: Any, parameter: Any, values: tuple[str, ...]) -> dict[str, Any]:
    from serde.passes.cut_inputs import parse_spec

    return _by_name(parse_spec(v) for v in values)


def _settings(context: Any, parameter: Any, values: tuple[str, ...]) -> dict[str, Any] | None:
    from serde.passes.set_inputs import parse_setting

    return _by_name(parse_setting(v) for v in values) or None


def types(context: Any, parameter: Any, values: tuple[str, ...]) -> dict[str, Any] | None:
    """``NAME=DIMS[:dtype]`` options as a mapping of names to types."""
    return _inputs(context, parameter, values) or None


def pairs(context: Any, parameter: Any, values: tuple[str, ...]) -> dict[str, str]:
    """``OLD=NEW`` options as a mapping; refuses one without a ``=``, or given twice."""

    def parse(value: str) -> tuple[str, str]:
        old, equals, new = value.partition("=")
        if not (old and equals and new):
            raise click.BadParameter(f"{value!r} is not old=new")
        return old, new

    return _by_name(map(parse, values))


def _sizes(context: Any, parameter: Any, values: tuple[str, ...]) -> dict[str, int] | None:
    def parse(value: str) -> tuple[str, int]:
        name, equals, size = value.partition("=")
        if not (name and equals and INTEGER.fullmatch(size)):
            raise click.BadParameter(f"{value!r} is not NAME=SIZE")
        return name, int(size)

    return _by_name(map(parse, values)) or None


def _batch(context: Any, parameter: Any, value: str | None) -> int | str | None:
    return int(value) if value is not None and INTEGER.fullmatch(value) else value


def _names(context: Any, parameter: Any, value: str | None) -> list[str] | None:
    return None if value is None else [n.strip() for n in value.split(",") if n.strip()]


def known_format(context: Any, parameter: Any, value: str | None) -> str | None:
    """The name of a format that is installed."""
    from serde.plugins import format_names

    if value is not None and value not in format_names():
        raise click.BadParameter(f"{value!r} is not one of {', '.join(format_names())}")
    return value


def known_target(context: Any, parameter: Any, value: str) -> str:
    """The name of a format that is installed, or of a profile of ONNX."""
    from serde.legalize.profiles import PROFILES

    return value if value in PROFILES else known_format(context, parameter, value) or value


def reading(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how the source is read."""
    for option in (
        click.option("--debug", is_flag=True, help="Show where an error came from."),
        click.option("--ignore-extra", is_flag=True, default=None,
                     help="Allow arrays that a variable without one may have meant."),
        click.option("--strict-paths", is_flag=True, default=None,
                     help="Refuse weights of ONNX models that are hard links."),
        click.option("--keep-domain", callback=_names, metavar="A,B",
                     help="Carry operators of these ONNX domains along as they are."),
        click.option("--random", type=click.Choice(["refuse", "onnx", "input"]),
                     help="Random numbers: refused, drawn by the runtime, or made of inputs."),
        click.option("--match-params", is_flag=True, default=None,
                     help="Pair arrays and variables of other names by kind, shape and order."),
        click.option("--nms", type=click.Choice(["full", "none"]),
                     help="Whether a detector ends with its suppression, or with all boxes."),
        click.option("--integers", type=click.Choice(["exact", "qdq"]),
                     help="Integer layers that round as MXNet does, or of real numbers."),
        click.option("--kernels", type=click.Choice(["onednn", "plain"]),
                     help="Whose results, where MXNet's kernels disagree."),
        click.option("--dequantize", is_flag=True, default=None,
                     help="Floats instead of quantised numbers."),
        click.option("--custom-domain", metavar="NAME",
                     help="Keep operators MXNet does not define, in an ONNX domain."),
        click.option("--custom-output", "custom_outputs", multiple=True, callback=types,
                     metavar="NAME=DIMS[:dtype]", help="What an operator kept so computes."),
        click.option("--epoch", type=int, help="The parameters' epoch; the last if left out."),
        click.option("--tvm", metavar="RELEASE",
                     help="The release of TVM that wrote a module, where it does not tell."),
        click.option("--static", multiple=True, callback=_sizes, metavar="NAME=SIZE",
                     help="A number for a dimension that has a name."),
        click.option("--rebatch", metavar="N", callback=_batch,
                     help="A batch size, or a name for it, instead of the one baked in."),
        click.option("--set-input", "set_inputs", multiple=True, callback=_settings,
                     metavar="NAME=VALUE", help="Fix an input to a value: sr=16000."),
        click.option("--inputs", "cut_inputs", callback=_names, metavar="A,B",
                     help="Begin the model at these values."),
        click.option("--outputs", callback=_names, metavar="A,B",
                     help="Cut the model at these values or layers."),
        click.option("--input", "inputs", multiple=True, callback=_inputs,
                     metavar="NAME=DIMS[:dtype]", help="An input's shape: data=N,3,224,224."),
        click.option("--from", "from_format", callback=known_format, metavar="FORMAT",
                     help="The source's format, if its content does not tell."),
        click.option("--params", metavar="FILE", help="The parameters, if not beside the source."),
    ):  # fmt: skip
        command = option(command)
    return command


def isolated(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that have the command run in a process of its own."""

    @wraps(command)
    def run(*args: Any, isolate: bool, max_seconds: int, max_memory: int, **options: Any) -> Any:
        context = click.get_current_context()
        if not isolate:
            inside = context.find_root().obj == sandbox.LIMITED
            for name in () if inside else ("max_seconds", "max_memory"):
                if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
                    option = f"--{name.replace('_', '-')}"
                    raise click.UsageError(f"{option} limits what --isolate runs: give both")
            return command(*args, **options)
        arguments = [a for a in context.meta[ARGUMENTS] if a != "--isolate"]
        code = sandbox.run_limited(arguments, options["source"], max_seconds, max_memory)
        return context.exit(code)

    for option in (
        click.option("--max-memory", default=sandbox.MEMORY, metavar="MIB", show_default=True,
                     type=click.IntRange(min=1),
                     help="With --isolate, the memory it may take (Linux)."),
        click.option("--max-seconds", default=sandbox.SECONDS, metavar="N", show_default=True,
                     type=click.IntRange(min=1),
                     help="With --isolate, the time it may take."),
        click.option("--isolate", is_flag=True,
                     help="Read a file nobody vouches for in a process of its own."),
    ):  # fmt: skip
        run = option(run)
    return run
