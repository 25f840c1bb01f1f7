"""The ``serde`` command.

Exit codes: 0 done, 1 cannot convert or verification failed, 2 usage, 3 unreadable input, 4 not
compared under --verify-strict, 5 the system refused (permissions, a full disk), 130 Ctrl-C.
"""

from __future__ import annotations

import atexit
import codecs
import errno
import os
import re
import shlex
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import Any

import click

from serde.cli.context import ARGUMENTS, FAILED, INTERRUPTED, LIMITED, SYSTEM, UNREADABLE, USAGE
from serde.cli.printing import LOST, print_line, print_lines
from serde.errors import (
    MalformedFile,
    SerdeError,
    UnknownFormat,
    UsageError,
    escape_controls,
    show_error,
    speak_of_flags,
)
from serde.io.command_files import within_command
from serde.io.gc_pause import pause_collector
from serde.io.signals import exit_on_signals
from serde.io.user_code import Terminated, find_user_line, is_output_open, refuse_exits

ASCII = {"→": "->", "×": "x", "…": "...", "≤": "<=", "≥": ">=", "–": "-", "—": "-"}
LONGEST = 1000  # letters of a command's summary
ENCODING_ERRORS = "serde.ascii"  # the name of the handler below
LISTED = re.compile(r"; it takes (--[a-z0-9-]+(?:, --[a-z0-9-]+)*)$")  # by a format
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
MODULES = {  # of each command, beside this one
    "backend": "partition_commands", "bench": "bench", "check": "check", "compare": "compare",
    "completion": "completion", "convert": "convert", "formats": "listings",
    "inspect": "inspection", "join": "editing", "migrate": "migrate", "ops": "listings",
    "partition": "partition_commands", "repair": "editing", "run": "run",
    "verify-hash": "inspection", "view": "view", "wrap": "editing",
}  # fmt: skip


class Commands(Mapping[str, click.Command]):
    """The commands by name; the module of one is imported when it is asked for."""

    def __getitem__(self, name: str) -> click.Command:
        module = import_module(f"serde.cli.{MODULES[name]}")
        return getattr(module, name.replace("-", "_"))  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


def _to_ascii(error: UnicodeError) -> tuple[str, int]:
    """Stand in for characters that a stream cannot encode: ASCII, or their escape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    shown = (ASCII.get(c) or c.encode("ascii", "backslashreplace").decode() for c in text)
    return "".join(shown), error.end


def _make_streams_total() -> None:
    """Let the standard streams take any text, whatever their encoding; open those that are closed.

    The next file would get the number of a closed one, and what libraries print would go into it.
    """
    codecs.register_error(ENCODING_ERRORS, _to_ascii)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=ENCODING_ERRORS)


def leave_process(code: Any) -> None:
    """End this process at once, where nothing is left to do.

    Python would free all it holds one by one, which takes longer than a small conversion.
    """
    is_alone = sum(not thread.daemon for thread in threading.enumerate()) == 1
    if not isinstance(code, (int, type(None))) or not is_alone:
        return
    with suppress(OSError, ValueError):
        atexit._run_exitfuncs()
    with suppress(*LOST):  # nobody could be told
        sys.stderr.flush()
    if code or is_output_open():  # what is lost of the output is for Python to tell of
        os._exit(code or 0)


@contextmanager
def _escape_usage() -> Iterator[None]:
    """Escape what click says of arguments, such as names of files that a shell expanded."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise  # its message is the help text
    except click.ClickException as error:
        error.message = escape_controls(error.message)  # type: ignore[misc]
        raise


@contextmanager
def _stop_on_interrupt(owner: Any) -> Iterator[None]:
    """End the command with the exit code of Ctrl-C.

    The process that it runs in for another (``owner`` is LIMITED) leaves the message to that.
    """
    try:
        yield
    except KeyboardInterrupt:
        if owner != LIMITED:
            print_lines("\nAborted!", err=True)  # on a line below the ^C of the terminal
        raise click.exceptions.Exit(INTERRUPTED) from None


class Command(click.Group):
    """The command group: turns every failure into one message and an exit code."""

    def main(self, args: Any = None, *more: Any, **extra: Any) -> Any:
        """Run the command on streams that take any text; without ``args``, those of the process.

        The collector rests: what a command imports and what it converts stays until it ends.
        Commands that run models, or code of the user, resume it.
        """
        _make_streams_total()
        if os.environ.get("NO_COLOR"):
            extra["color"] = False
        with exit_on_signals(), pause_collector():
            try:
                return super().main(args, *more, **extra)
            except SystemExit as error:
                code = error.code
            except OSError as error:  # what click itself prints: help, and errors of usage
                code, message = explain(error)
                print_line(f"serde: {message}", err=True)
            if args is None:
                leave_process(code)
            sys.exit(code)

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments, for a process that is to run the command again."""
        context.meta[ARGUMENTS] = [*args]
        return super().parse_args(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, each with the whole first sentence of what it says of itself."""
        rows = [(n, c.get_short_help_str(LONGEST)) for n, c in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse the arguments of the group."""
        with _stop_on_interrupt(extra.get("obj")), _escape_usage():
            return super().make_context(*args, **extra)

    def invoke(self, context: click.Context) -> Any:
        """Run the command; print what went wrong."""
        with _stop_on_interrupt(context.obj):
            return self._invoke(context)

    def _invoke(self, context: click.Context) -> Any:
        try:
            with within_command() as files, _escape_usage(), refuse_exits(), speak_of_flags():
                files.call = shlex.join(["serde", *context.meta[ARGUMENTS]])
                return super().invoke(context)
        except (click.exceptions.Exit, click.ClickException, click.Abort):
            raise
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # code of users may raise any
            _raise_signal_before(error)
            if isinstance(error, BrokenPipeError) and error.errno == errno.EPIPE:
                raise  # nobody reads what is printed
            if "--debug" in sys.argv:
                import traceback

                print_lines(traceback.format_exc(), err=True)
            code, message = explain(error)
            message = LISTED.sub(partial(self._list_its_own, context), message)
            print_lines(f"serde: {message}{self._tell_other_options(context, message)}", err=True)
            context.exit(code)

    def _list_its_own(self, context: click.Context, listing: re.Match[str]) -> str:
        """The options of a format that the command has that ran."""
        known = _flags_of(self.commands.get(context.invoked_subcommand or ""))
        return f"; it takes {', '.join(f for f in listing[1].split(', ') if f in known) or 'none'}"

    def _tell_other_options(self, context: click.Context, message: str) -> str:
        """A line about options that a message advises, and the command that ran has not."""
        name = context.invoked_subcommand or ""
        all_flags, known = (_flags_of(self.commands.get(c)) for c in ("convert", name))
        others = [f for f in dict.fromkeys(FLAG.findall(message)) if f in all_flags - known]
        if not others:
            return ""
        are = "is an option" if len(others) == 1 else "are options"
        advice = f"convert the model first, and {name} the result"
        return f"\n{', '.join(others)} {are} of serde convert: {advice}"


def _raise_signal_before(error: BaseException) -> None:
    """Raise the signal after which an error came, while what it interrupted was cleaned up."""
    before = error.__context__
    while before is not None:
        if isinstance(before, (KeyboardInterrupt, Terminated)):
            raise before from None
        before = before.__context__


def _flags_of(command: click.Command | None) -> set[str]:
    """The options that a command has, as they are typed."""
    parameters = command.params if command else ()
    return {flag for p in parameters for flag in (*p.opts, *p.secondary_opts)}


def explain(error: BaseException) -> tuple[int, str]:
    """The exit code and the message of an error."""
    if isinstance(error, UsageError):
        return USAGE, str(error)
    if isinstance(error, (MalformedFile, UnknownFormat)):
        return UNREADABLE, str(error)
    if isinstance(error, SerdeError):
        return FAILED, str(error)
    if isinstance(error, OSError):
        place = error.filename2 or error.filename
        text = f"{place}: {error.strerror}" if place else str(error) or type(error).__name__
        return SYSTEM, escape_controls(text)
    if isinstance(error, MemoryError):
        return FAILED, "it takes more memory than there is"
    text = escape_controls(show_error(error))
    line = find_user_line(error)
    if line is not None:
        return FAILED, escape_controls(f"{line}: the code fails with {text}")
    return FAILED, f"internal error: {text} (--debug shows where)"


@click.group(
    cls=Command, commands=Commands(), context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="serde-hub", prog_name="serde")
def main() -> None:
    """Convert deep-learning models between MXNet, ONNX, TVM Relay, PyTorch and TensorFlow Lite."""
