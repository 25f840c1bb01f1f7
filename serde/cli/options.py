"""The options of the ``serde`` command: those that the hub and the formats declare, and its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, wraps
from typing import Any

import click
from click.core import ParameterSource

from serde.cli import sandbox
from serde.cli.context import ARGUMENTS, LIMITED
from serde.cli.printing import print_line
from serde.io.child_process import FILE_SIZE
from serde.passes.batch.request import parse_request
from serde.passes.cut_inputs import parse_spec
from serde.passes.set_inputs import parse_setting
from serde.pipeline import profile_names
from serde.plugins import Format, format_names, installed_formats
from serde.plugins.options import METAVARS, Option, ReadOptions, WriteOptions, list_options

INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
FOR_MANY = frozenset({"flag", "text", "integer", "batch", "sizes"})  # kinds of options
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


FORMAT_GROUPS = {"mxnet": "MXNet", "relay": "Relay", "onnx": "ONNX"}
COMMON, VERIFICATION, LIMITS = "Options", "Verification", "Limits"


class DocumentedOption(click.Option):
    """An option with what the reference page says of it, and how it was spelled before.

    ``details`` follow the help text; ``formats`` are those that take it, none for all. ``alone``
    is the word, of its choices, that the option means where none of them follows it. ``group``
    is the part of ``--help`` that lists it.
    """

    def __init__(
        self, *names: Any, details: str = "", formats: tuple[str, ...] = (),
        old_flags: tuple[str, ...] = (), alone: str = "", group: str = "", **declared: Any,
    ) -> None:  # fmt: skip
        super().__init__(*names, **declared)
        self.group = group or (FORMAT_GROUPS.get(formats[0], "") if len(formats) == 1 else "")
        self.alone = alone
        self.details, self.formats, self.old_flags = details, formats, old_flags


class RenamingCommand(click.Command):
    """A command that takes options by their old names as well, with a notice.

    Options that have a meaning ``alone`` take one of their words, or none.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Replace the old names, and give each option its word, up to a ``--``."""
        new = {old: p.opts[0] for p in self.params for old in getattr(p, "old_flags", ())}
        end = args.index("--") if "--" in args else len(args)
        for at, argument in enumerate(args[:end]):
            flag, equals, value = argument.partition("=")
            if flag in new:
                _notice(ctx, f"{flag} is now {new[flag]}")
                args[at] = f"{new[flag]}{equals}{value}"
        return super().parse_args(ctx, [*self._with_words(args[:end]), *args[end:]])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options by what they are about: common ones, verification, formats, limits."""
        order = (COMMON, VERIFICATION, *FORMAT_GROUPS.values(), LIMITS)
        groups: dict[str, list[tuple[str, str]]] = {name: [] for name in order}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                groups[getattr(parameter, "group", "") or COMMON].append(record)
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)

    def _with_words(self, args: list[str]) -> Iterator[str]:
        """The arguments, each option that may stand alone in one piece with its word."""
        alone = {flag: p for p in self.params if getattr(p, "alone", "") for flag in p.opts}
        ahead = iter([*args, None])
        argument = next(ahead)
        while argument is not None:
            following = next(ahead)
            option: Any = alone.get(argument)
            if option is None:
                yield argument
            elif following is not None and following in option.type.choices:
                yield f"{argument}={following}"
                following = next(ahead)
            else:
                yield f"{argument}={option.alone}"
            argument = following


class Words(click.Choice[str]):
    """Some words; those of before with a notice."""

    def __init__(self, option: Option) -> None:
        super().__init__(option.choices)
        self.old = option.old_choices

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The word of today."""
        if value in self.old:
            _notice(ctx, f"{param.opts[0]} {value} is now {param.opts[0]} {self.old[value]}")
        return super().convert(self.old.get(value, value), param, ctx)


def _notice(context: click.Context, text: str) -> None:
    """Tell on the standard error output that a name has changed; once where a process is begun."""
    if context.find_root().obj != LIMITED:
        print_line(f"deprecated: {text}", err=True)


def parse_by_name(parsed: Iterable[tuple[str, Any]]) -> dict[str, Any] | None:
    """Values of one option by the name each begins with; refuses a name given twice."""
    values: dict[str, Any] = {}
    for name, value in parsed:
        if name in values:
            raise click.BadParameter(f"{name!r} is given twice")
        values[name] = value
    return values or None


def _parse_size(value: str) -> tuple[str, int]:
    name, equals, size = value.partition("=")
    if not (name and equals and INTEGER.fullmatch(size)):
        raise click.BadParameter(f"{value!r} is not NAME=SIZE")
    return name, int(size)


def _parse_pair(value: str) -> tuple[str, str]:
    old, equals, new = value.partition("=")
    if not (old and equals and new):
        raise click.BadParameter(f"{value!r} is not old=new")
    return old, new


def _names(context: Any, parameter: Any, value: str | None) -> list[str] | None:
    return None if value is None else [n.strip() for n in value.split(",") if n.strip()]


ITEMS: dict[str, Callable[[str], tuple[str, Any]]] = {
    "types": parse_spec, "sizes": _parse_size, "values": parse_setting, "renames": _parse_pair,
    "batch": parse_request,
}  # fmt: skip


def _to_click(name: str, option: Option, formats: tuple[str, ...]) -> Decorator:
    """A declared option as one of the command."""
    flags = option.flags or (f"--{name.replace('_', '-')}",)
    more: dict[str, Any] = {"metavar": option.metavar or METAVARS.get(option.kind)}
    if option.choices:
        more = {"type": Words(option)}
    elif option.kind == "flag":
        more = {"is_flag": True, "default": None}
    elif option.kind == "integer":
        more["type"] = int
    elif option.kind in ITEMS:
        parse = ITEMS[option.kind]
        more |= {
            "multiple": True,
            "callback": lambda c, p, values: parse_by_name(map(parse, values)),
        }
    elif option.kind == "names":
        more["callback"] = _names
    return add_option(
        *flags, name, help=option.help, details=option.details, formats=formats,
        old_flags=option.old_flags, **more,
    )  # fmt: skip


def add_option(*names: str, **declared: Any) -> Decorator:
    """An option with ``details`` for the reference page; commands that take it share it."""
    option = DocumentedOption(names, **declared)

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        command.__dict__.setdefault("__click_params__", []).append(option)
        return command

    return add


def declared_options(
    hub: type, of_format: Callable[[Format], type]
) -> Iterator[tuple[str, Option, tuple[str, ...]]]:
    """The options of the hub, then those of each format: name, declaration, formats taking it."""
    own = {f.name: list_options(of_format(f)) for f in installed_formats()}
    by_name = {name: option for options in own.values() for name, option in options.items()}
    for name, option in (dict(list_options(hub)) | by_name).items():
        takers = () if name in list_options(hub) else tuple(f for f in own if name in own[f])
        if option.kind != "object":
            yield name, option, takers


def _combine(options: Iterable[Decorator]) -> Decorator:
    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed([*options]):
            command = option(command)
        return command

    return add


def add_read_options() -> Decorator:
    """Add the options that say how the source is read."""
    return _add_reading(*installed_formats())


@cache
def _add_reading(*formats: Format) -> Decorator:
    """The options of these formats, made once for all commands that have them."""
    return _combine(
        [*(_to_click(*each) for each in declared_options(ReadOptions, lambda f: f.read_options)),
         add_option("--from", "from_format", callback=known_format, metavar="FORMAT",
                    help="The source's format, where its content does not tell."),
         add_option("--debug", is_flag=True, help="Show where an error came from.")]
    )  # fmt: skip


def add_write_options(only: tuple[str, ...] = ()) -> Decorator:
    """Add the options that say how the result is written, or only some of them."""
    every = declared_options(WriteOptions, lambda f: f.write_options)
    return _combine([_to_click(*each) for each in every if not only or each[0] in only])


def options_for_many(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that can apply to many models: those that name no value or file of one."""
    every = [*declared_options(ReadOptions, lambda f: f.read_options),
             *declared_options(WriteOptions, lambda f: f.write_options)]  # fmt: skip
    debug = add_option("--debug", is_flag=True, help="Show where an error came from.")
    return _combine([*(_to_click(*each) for each in every if each[1].kind in FOR_MANY), debug])(
        command
    )


def give(**options: Any) -> dict[str, Any]:
    """The options that are given."""
    return {k: v for k, v in options.items() if v is not None}


def with_report(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that names a report, whose path is checked before any work is done."""
    add = add_option(
        "--report", "report_path", metavar="FILE", callback=_check_report,
        help="Write a report of what was done: FILE.html, FILE.md or FILE.json.",
        details="It is written too where the model cannot be converted, with the refused nodes. "
                "See [report.md](report.md).",
    )  # fmt: skip
    return add(command)


def _check_report(context: Any, parameter: Any, value: str | None) -> str | None:
    if value is not None:
        from serde.api.report.data import report_suffix

        report_suffix(value)
        claim_output(value)
    return value


def claim_output(path: str) -> None:
    """Check a file that a command is to write beside a model, before it reads anything."""
    from serde.io.atomic_write import check_target
    from serde.io.command_files import active_files

    check_target(path)
    active_files().claim_output(path)


def known_format(context: Any, parameter: Any, value: str | None) -> str | None:
    """The name of a format that is installed."""
    if value is not None and value not in format_names():
        raise click.BadParameter(describe_choice(value, format_names()))
    return value


def describe_choice(value: str, words: Sequence[str]) -> str:
    """The message about a word that is none of some, with the one that may be meant."""
    from difflib import get_close_matches

    close = get_close_matches(value, words, 1)
    meant = f"; did you mean {close[0]}?" if close else ""
    return f"{value!r} is not one of {', '.join(words)}{meant}"


def known_target(context: Any, parameter: Any, value: str) -> str:
    """The name of a format that is installed, or of a profile of ONNX."""
    is_profile = value in profile_names()
    return value if is_profile else known_format(context, parameter, value) or value


def add_isolation(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that have the command run in a process of its own."""

    @wraps(command)
    def run(
        *args: Any, isolate: bool, max_seconds: int, max_memory: int, max_file_size: int,
        **options: Any,
    ) -> Any:  # fmt: skip
        context = click.get_current_context()
        if not isolate:
            inside = context.find_root().obj == LIMITED
            for name in () if inside else ("max_seconds", "max_memory", "max_file_size"):
                if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
                    option = f"--{name.replace('_', '-')}"
                    raise click.UsageError(f"{option} limits what --isolate runs: give both")
            return command(*args, **options)
        arguments = [a for a in context.meta[ARGUMENTS] if a != "--isolate"]
        limits = max_seconds, max_memory, max_file_size
        code = sandbox.run_limited(arguments, options["source"], *limits)
        return context.exit(code)

    add = _combine([
        add_option("--isolate", is_flag=True, group=LIMITS,
                   help="Read a file nobody vouches for in a process of its own.",
                   details="A crash in a library, or a file made to exhaust the machine, ends that "
                           "process alone, and it ends with the command. Nothing is imported "
                           "as the environment says."),
        add_option("--max-seconds", default=sandbox.SECONDS, metavar="N", show_default=True,
                   group=LIMITS, type=click.IntRange(1, 10**6),
                   help="With --isolate, the time it may take."),
        add_option("--max-memory", default=sandbox.MEMORY, metavar="MIB", show_default=True,
                   group=LIMITS, type=click.IntRange(sandbox.LEAST_MEMORY, 1 << 30),
                   help="With --isolate, the memory it may take (Linux)."),
        add_option("--max-file-size", default=FILE_SIZE, metavar="MIB", show_default=True,
                   group=LIMITS, type=click.IntRange(1, 1 << 30),
                   help="With --isolate, the size of each file it may write."),
    ])  # fmt: skip
    return add(run)
