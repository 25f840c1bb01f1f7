"""The options of the ``serde`` command, and how their values are read."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from serde import isolation

ARGUMENTS = "serde.arguments"  # of the command, for a process that is to run it again


def _inputs(context: Any, parameter: Any, values: tuple[str, ...]) -> dict[str, Any]:
    from serde.inputs import parse_spec

    return dict(parse_spec(v) for v in values)


def types(context: Any, parameter: Any, values: tuple[str, ...]) -> dict[str, Any] | None:
    """``NAME=DIMS[:dtype]`` options as a mapping of names to types."""
    return _inputs(context, parameter, values) or None


def pairs(context: Any, parameter: Any, values: tuple[str, ...]) -> dict[str, str]:
    """``OLD=NEW`` options as a mapping; refuses one without a ``=``, or given twice."""
    found = {}
    for value in values:
        old, equals, new = value.partition("=")
        if not (old and equals and new):
            raise click.BadParameter(f"{value!r} is not old=new")
        if old in found:
            raise click.BadParameter(f"{old!r} is renamed twice")
        found[old] = new
    return found


def _sizes(context: Any, parameter: Any, values: tuple[str, ...]) -> dict[str, int] | None:
    found = {}
    for value in values:
        name, equals, size = value.partition("=")
        if not (name and equals and size.isdigit()):
            raise click.BadParameter(f"{value!r} is not NAME=SIZE")
        found[name] = int(size)
    return found or None


def _batch(context: Any, parameter: Any, value: str | None) -> int | str | None:
    return int(value) if value is not None and value.isdigit() else value


def _names(context: Any, parameter: Any, value: str | None) -> list[str] | None:
    return [n.strip() for n in value.split(",") if n.strip()] if value else None


def known_format(context: Any, parameter: Any, value: str | None) -> str | None:
    """The name of a format that is installed."""
    from serde.plugins import format_names

    if value is not None and value not in format_names():
        raise click.BadParameter(f"{value!r} is not one of {', '.join(format_names())}")
    return value


def known_target(context: Any, parameter: Any, value: str) -> str:
    """The name of a format that is installed, or of a profile of ONNX."""
    from serde.profiles import PROFILES

    return value if value in PROFILES else known_format(context, parameter, value) or value


def reading(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how the source is read."""
    for option in (
        click.option("--debug", is_flag=True, help="Show where an error came from."),
        click.option("--ignore-extra", is_flag=True, default=None,
                     help="Allow arrays that belong to no variable."),
        click.option("--strict-paths", is_flag=True, default=None,
                     help="Refuse weights of ONNX models that are hard links."),
        click.option("--random", type=click.Choice(["refuse", "onnx", "input"]),
                     help="Random numbers: refused, drawn by the runtime, or made of inputs."),
        click.option("--match-params", is_flag=True, default=None,
                     help="Pair arrays and variables of other names by kind, shape and order."),
        click.option("--nms", type=click.Choice(["full", "none"]),
                     help="Whether a detector ends with its suppression, or with all boxes."),
        click.option("--integers", type=click.Choice(["exact", "qdq"]),
                     help="Integer layers that round as MXNet does, or of real numbers."),
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
        if not isolate:
            return command(*args, **options)
        context = click.get_current_context()
        arguments = [a for a in context.meta[ARGUMENTS] if a != "--isolate"]
        code = isolation.run_limited(arguments, options["source"], max_seconds, max_memory)
        return context.exit(code)

    for option in (
        click.option("--max-memory", default=isolation.MEMORY, metavar="MIB", show_default=True,
                     help="With --isolate, the memory it may take (Linux)."),
        click.option("--max-seconds", default=isolation.SECONDS, metavar="N", show_default=True,
                     help="With --isolate, the time it may take."),
        click.option("--isolate", is_flag=True,
                     help="Read a file nobody vouches for in a process of its own."),
    ):  # fmt: skip
        run = option(run)
    return run
