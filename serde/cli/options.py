"""The options of the ``serde`` command: those that the hub and the formats declare, and its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from serde.cli import sandbox
from serde.cli.context import ARGUMENTS, LIMITED
from serde.errors import UsageError
from serde.io.child_process import FILE_SIZE
from serde.passes.batch.request import parse_request
from serde.passes.cut_inputs import parse_spec
from serde.passes.set_inputs import parse_setting
from serde.plugins import (
    explain_profile,
    format_names,
    get_format,
    installed_formats,
    read_classes,
    read_formats,
    write_classes,
    written_formats,
)
from serde.plugins.options import (
    IMAGES,
    LIMITS,
    METAVARS,
    VERIFICATION,
    Option,
    Words,
    check_word,
    list_words,
    merge_options,
    names_of,
)
from serde.plugins.targets import explain_replaced

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
FOR_MANY = frozenset({"flag", "text", "integer", "batch", "sizes"})  # kinds of options
PATHS = frozenset({"FILE", "DIR", "NPZ"})  # metavars of what shells complete themselves
PATH = click.Path(readable=False)  # rights are looked at by what opens it
COMMON = "Options"
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class WordType(click.ParamType):  # type: ignore[type-arg]
    """Some words, listed when they are asked for; where it is open, others are taken too."""

    name = "word"

    def __init__(self, words: Words, is_open: bool = False) -> None:
        self.words, self.is_open = words, is_open

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """The words."""
        return f"[{'|'.join(list_words(self.words))}]"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value, if it is one of the words."""
        if not self.is_open:
            try:
                check_word("", value, list_words(self.words))
            except UsageError as error:
                hint = explain_profile(value) if param.name == "to_format" else ""
                reason = f"{value!r} is no format{hint}" if hint else str(error)
                self.fail(explain_replaced(value) or reason, param, ctx)
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The words that begin like what is typed; files too, where it is open."""
        from click.shell_completion import CompletionItem

        begun = [w for w in list_words(self.words).values() if w.startswith(incomplete)]
        files = [CompletionItem(incomplete, type="file")] if self.is_open and not begun else []
        return [*map(CompletionItem, dict.fromkeys(begun)), *files]


class DocumentedOption(click.Option):
    """An option with what the reference page says of it.

    ``details`` follow the help text; ``formats`` are those that take it, none for all. ``choices``
    are words, or a function that lists them, and complete what is typed; ``is_open``, where others
    are taken too. ``alone`` is the one that the option means where none of them follows it.
    ``group`` is the part of ``--help`` that lists it, ``left_out`` what counts where it is not
    given, which is then for the function to know.
    """

    def __init__(
        self, *names: Any, details: str = "", formats: tuple[str, ...] = (), choices: Words = (),
        is_open: bool = False, alone: str = "", group: str = "", left_out: Any = None,
        **declared: Any,
    ) -> None:  # fmt: skip
        if choices:
            declared["type"] = WordType(choices, is_open)
        elif declared.get("metavar") in PATHS:
            declared["type"] = PATH
        super().__init__(*names, **declared)
        self.group = group or (title_of(formats[0]) if len(formats) == 1 else "")
        self.alone, self.details, self.formats = alone, details, formats
        self.left_out = left_out

    @property
    def is_open(self) -> bool:
        """Whether it takes other words than those that it lists."""
        return isinstance(self.type, WordType) and self.type.is_open

    def list_words(self) -> tuple[str, ...]:
        """The words that it takes."""
        kind = self.type
        words = list_words(kind.words) if isinstance(kind, WordType) else {}
        return tuple(dict.fromkeys(words.values()))

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Its line of the help text, with the words that it takes, unless they stand for it."""
        record, words = super().get_help_record(ctx), self.list_words()
        if record is None:
            return None
        notes = [] if self.left_out is None else [f"default: {self.left_out}"]
        if words and self.metavar and not self.alone:
            notes.append(", ".join((*words, "…") if self.is_open else words))
        return record[0], "  ".join([record[1], *(f"[{note}]" for note in notes)])


def title_of(name: str) -> str:
    """What headings call a format."""
    return get_format(name).title or name


class DocumentedCommand(click.Command):
    """A command whose help text groups its options.

    Options that have a meaning ``alone`` take one of their words, or none.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give each option its word, up to a ``--``."""
        end = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [*self._with_words(args[:end]), *args[end:]])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options by what they are about: common ones, verification, formats, limits."""
        titles = (title_of(name) for name in format_names())
        groups: dict[str, list[tuple[str, str]]] = {
            name: [] for name in (COMMON, VERIFICATION, IMAGES, *titles, LIMITS)
        }
        for option in (p for p in self.get_params(ctx) if isinstance(p, click.Option)):
            if (record := option.get_help_record(ctx)) is not None:
                groups[getattr(option, "group", "") or COMMON].append(record)
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
            elif following is not None and following in option.list_words():
                yield f"{argument}={following}"
                following = next(ahead)
            else:
                yield f"{argument}={option.alone}"
            argument = following


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


def _parse_text(value: str) -> tuple[str, str]:
    key, equals, text = value.partition("=")
    if not (key and equals):
        raise click.BadParameter(f"{value!r} is not KEY=TEXT")
    return key, text


def _names(context: Any, parameter: Any, value: str | None) -> list[str] | None:
    return None if value is None else [n.strip() for n in value.split(",") if n.strip()]


NUMBERS: dict[str, tuple[type, Any]] = {
    "integer": (int, click.IntRange), "number": (float, click.FloatRange)
}  # fmt: skip
ITEMS: dict[str, Callable[[str], tuple[str, Any]]] = {
    "types": parse_spec, "sizes": _parse_size, "values": parse_setting, "renames": _parse_pair,
    "texts": _parse_text,
    "batch": parse_request,
}  # fmt: skip


def add_declared(option: Option, formats: tuple[str, ...] = ()) -> Decorator:
    """A declared option as one of the command."""
    more: dict[str, Any] = {"metavar": option.metavar or METAVARS.get(option.kind)}
    if option.choices and option.kind != "names":
        more |= {"choices": option.choices, "is_open": option.is_open}
    elif option.kind == "flag":
        more = {"is_flag": True, "default": None}
    elif option.kind in NUMBERS:
        plain, within = NUMBERS[option.kind]
        more["type"] = plain if option.least is None else within(min=option.least)
    elif option.kind in ITEMS:
        parse = ITEMS[option.kind]
        more |= {
            "multiple": True,
            "callback": lambda c, p, values: parse_by_name(map(parse, values)),
        }
    elif option.kind == "names":
        more["callback"] = _names
    return add_option(
        *option.all_flags, option.name, help=option.help, details=option.details, formats=formats,
        alone=option.alone, group=option.group, left_out=option.default, **more,
    )  # fmt: skip


def add_option(*names: str, **declared: Any) -> Decorator:
    """An option with ``details`` for the reference page; commands that take it share it."""
    option = DocumentedOption(names, **declared)

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        command.__dict__.setdefault("__click_params__", []).append(option)
        return command

    return add


DEBUG = add_option("--debug", is_flag=True, help="Show where an error came from.")
TO = add_option("--to", "to_format", choices=written_formats, metavar="FORMAT",
                help="The format to write, where the suffix does not tell.")  # fmt: skip


def _combine(options: Iterable[Decorator]) -> Decorator:
    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed([*options]):
            command = option(command)
        return command

    return add


SOURCE = click.argument("source", type=PATH)


def list_backends() -> list[str]:
    """The backends that are installed."""
    from serde.backends.description import list_names

    return list_names()


def add_options(*classes: type, keep: Callable[[Option], bool] = lambda option: True) -> Decorator:
    """Add the options that classes declare, but those of Python only, and the formats of each."""
    by_format = {f.name: f.own_options() for f in installed_formats()}
    return _combine(
        [add_declared(option, tuple(name for name in by_format if option.name in by_format[name]))
         for option in merge_options(classes).values() if option.kind != "object" and keep(option)]
    )  # fmt: skip


def add_read_options() -> Decorator:
    """Add the options that say how the source is read."""
    return _add_reading(tuple(read_classes()))


@cache
def _add_reading(classes: tuple[type, ...]) -> Decorator:
    """The options of these classes, made once for all commands that have them."""
    source = add_option("--from", "from_format", choices=read_formats, metavar="FORMAT",
                        help="The source's format, where its content does not tell.")  # fmt: skip
    return _combine([add_options(*classes), source, DEBUG])


def add_write_options(only_checked: bool = False) -> Decorator:
    """Add the options that say how the result is written, or those that ``serde check`` takes."""
    read = names_of(read_classes())
    return add_options(
        *write_classes(), keep=lambda o: o.name not in read and (o.is_checked or not only_checked)
    )


def options_for_many(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that can apply to many models: those that name no value or file of one."""
    every = (*read_classes(), *write_classes())
    return _combine([add_options(*every, keep=lambda o: o.kind in FOR_MANY), DEBUG])(command)


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
        from serde.api.report.data import is_report, report_suffix

        report_suffix(value)
        claim_output(value, is_report, "report of serde")
    return value


def claim_output(path: str, is_kind: Callable[[Path], bool], kind: str) -> None:
    """Check a file that a command is to write beside a model, before it reads anything."""
    from serde.io.atomic_write import check_target, refuse_other_file
    from serde.io.command_files import active_files

    check_target(path)
    active_files().claim_output(path)
    refuse_other_file(path, is_kind, kind)


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
