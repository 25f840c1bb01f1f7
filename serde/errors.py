"""Every error serde raises on purpose.

SerdeError
├── UsageError             the call itself cannot be meant: a bad shape, contradicting options
│   ├── UnknownArgument    a function has no argument of this name (also a TypeError)
│   └── TargetRefused      what lies at the path to write, or beside it, is in the way
├── UnknownFormat          no plugin claims the path, name or object
├── MissingDependency      a plugin's framework is not installed (also an ImportError)
├── MalformedFile          the bytes are not what their format promises
├── InvalidGraph           a graph breaks an IR invariant (a bug, ours or a plugin's)
├── Unconvertible          the nodes of a model that have no equivalent, all of them at once
└── ConversionError        one node cannot be converted; carries where it came from
    ├── UnsupportedOp
    └── UnsupportedAttribute
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import Enum
from functools import wraps
from os import PathLike
from types import TracebackType
from typing import Any, Protocol, TypeVar, cast

OUT_OF_MEMORY = "takes more memory than there is"  # the reason of a node
LONGEST_SHOWN, MOST_SHOWN = 120, 16  # characters of a text, elements of a list in a message
# Characters that a terminal or a log obeys, or that change the order of those around them:
# controls, directions of text, separators of lines, and halves of a pair of UTF-16.
CONTROL = (
    "\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f"
)
IN_A_LINE = re.compile(f"[{CONTROL}\n]")
LONGEST_LINE, LONGEST_END = 4000, 1000  # characters of a line of a message, and of its end


def escape_controls(text: str, pattern: re.Pattern[str] = IN_A_LINE) -> str:
    """Text with escapes, ``\\x1b``, in place of what a terminal would obey."""
    if text.isascii() and text.isprintable():
        return text
    return pattern.sub(lambda m: m[0].encode("unicode_escape").decode(), text)


def write_line(text: str) -> str:
    """Text as a line of a message: of a very long one its beginning, and its end with advice."""
    line = escape_controls(text)
    if len(line) <= LONGEST_LINE:
        return line
    return f"{line[: LONGEST_LINE - LONGEST_END]} … {line[-LONGEST_END:]}"


def show_attribute(value: Any) -> str:
    """The value of an attribute as a message shows it: text without quotes, objects in words."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a number of NumPy's
        return repr(value.item())
    if isinstance(value, (str, bytes)):
        text = value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")
        return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"
    if value is None or type(value) in (bool, int, float):
        return repr(value)
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, (tuple, list)):
        items = [show_attribute(v) for v in value[:MOST_SHOWN]]
        items += ["…"] if len(value) > MOST_SHOWN else []
        return f"({', '.join(items)}{',' if len(value) == 1 else ''})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k}: {show_attribute(v)}" for k, v in value.items()) + "}"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        dtype, shape = value.dtype, value.shape
        dims = "" if shape is None else ",".join("?" if d is None else str(d) for d in shape)
        name = f" {value.name!r}" if getattr(value, "name", "") else ""
        return f"the {getattr(dtype, 'value', dtype) or 'untyped'}[{dims}] tensor{name}"
    if hasattr(value, "graph") or hasattr(value, "nodes"):
        return "a subgraph"
    if hasattr(value, "value"):  # a number of Relay's
        return show_attribute(value.value)
    label = getattr(value, "name", None) or getattr(value, "type_key", None)
    return repr(label) if isinstance(label, str) else f"a {type(value).__name__}"


class Listing(str):
    """A message of several lines, escaped one by one: names in them begin no line."""

    __slots__ = ()

    def __new__(cls, lines: Iterable[str]) -> Listing:
        return super().__new__(cls, "\n".join(map(write_line, lines)))


# Whether options in messages stay as the command spells them, ``--input``, in which they are
# written; else whoever calls a function is told of ``inputs=`` (``serde.plugins.keywords``).
flags_are_known: ContextVar[bool] = ContextVar("flags_are_known", default=False)


@contextmanager
def speak_of_flags() -> Iterator[None]:
    """Name options in the messages of the block as the command spells them."""
    token = flags_are_known.set(True)
    try:
        yield
    finally:
        flags_are_known.reset(token)


def find_alike(word: str, words: Mapping[str, str] | Iterable[str]) -> str | None:
    """The one of some words that may be meant by another; of a mapping, what it has for that."""
    from difflib import get_close_matches

    meant = words if isinstance(words, Mapping) else {w: w for w in words}
    letters, word = {w.casefold(): meant[w] for w in meant}, word.casefold()
    parts = [part for part in re.split("[_-]", word) if part in letters]  # opset_version
    close = get_close_matches(word, letters, 1, 0.8) or parts or get_close_matches(word, letters, 1)
    return letters[close[0]] if close else None


def suggest(word: str, words: Mapping[str, str] | Iterable[str]) -> str:
    """The end of a message about a word that is none of some: which may be meant, if any."""
    alike = find_alike(word, words)
    return f"; did you mean {alike}?" if alike else ""


class SerdeError(Exception):
    """Base of every error serde raises on purpose; its text can be printed and logged."""

    def __str__(self) -> str:
        text = self.args[0] if self.args else ""
        return str(text) if isinstance(text, Listing) else write_line(super().__str__())

    def respell(self, change: Callable[[str], str]) -> None:
        """Change the text that a reader is told."""
        text = self.args[0] if self.args else None
        if isinstance(text, str):
            lines = change(text).split("\n") if isinstance(text, Listing) else None
            self.args = (change(text) if lines is None else Listing(lines), *self.args[1:])


class UsageError(SerdeError):
    """The call cannot be carried out as written."""


class UnknownArgument(UsageError, TypeError):
    """A function has no argument of this name."""


class TargetRefused(UsageError):
    """What lies at the path to write, or beside it, is in the way: elsewhere it can be written."""


class UnknownFormat(SerdeError):
    """No format or bridge claims the path, name or object."""


class MissingDependency(SerdeError, ImportError):
    """A framework a plugin needs is not installed; the message carries the pip line."""


class MalformedFile(SerdeError):
    """The bytes of ``path`` are not what their format promises.

    ``place`` tells where: a byte offset, a line and column, or a JSON path.
    """

    def __init__(self, path: str | PathLike[str], reason: str, place: str = "") -> None:
        super().__init__(reason)
        self.path, self.place = str(path), place

    def __str__(self) -> str:
        place = f", {self.place}" if self.place else ""
        return f"{escape_controls(self.path + place)}: {super().__str__()}"


class InvalidGraph(SerdeError):
    """A graph breaks an invariant of the IR."""


class Source(Protocol):
    """Where a node came from, printed as the user would look for it; see ``serde.ir.graph``."""

    @property
    def name(self) -> str:
        """What the source calls the node."""


class ConversionError(SerdeError):
    """A node cannot be converted. ``stage`` and ``source`` are filled in by the driver."""

    stage: str = ""
    source: Source | None = None

    @property
    def reason(self) -> str:
        """The message without the node it concerns."""
        return super().__str__()

    def __str__(self) -> str:
        where = f"{escape_controls(str(self.source))}: " if self.source else ""
        return where + self.reason


class UnsupportedOp(ConversionError):
    """No rule covers the operator."""


class UnsupportedAttribute(ConversionError):
    """The node sets an attribute, or a value of one, that its rule does not handle."""


REQUIRED = "attribute {!r} is required. Enter it in the model, or export that anew"
SHOWN_NAMES = 5  # of nodes


@dataclass(frozen=True)
class Problem:
    """One group of nodes that cannot be converted for the same reason.

    ``attrs`` is the attribute configuration the nodes share, ``names`` the nodes.
    """

    op: str
    attrs: Mapping[str, Any]
    reason: str
    names: tuple[str, ...]
    stage: str = ""

    @property
    def count(self) -> int:
        """How many nodes are in the group."""
        return len(self.names)

    def respell(self, change: Callable[[str], str]) -> Problem:
        """The group, with another text of the reason."""
        return replace(self, reason=change(self.reason))

    def __str__(self) -> str:
        attrs = ", ".join(f"{k}={show_attribute(v)}" for k, v in self.attrs.items())
        shown = f"{self.op} ×{self.count} ({_show_names(self.names)}): {self.reason}"
        return f"{shown.removesuffix('.')}. Attributes: {attrs}" if attrs else shown


SHOWN_APART = 3  # groups of one reason; more of them are shown as one


# What a user can do, at the end of a reason: a sentence, a clause, or options in parentheses.
ADVICE = re.compile(r"(?:\. |: (?=[Gg]ive ))([A-Za-z][^.]*(?:\.[^ .][^.]*)*)\.?$")
UNREAD = re.compile("→ ir has no rule for ")  # as rule tables say it
SIZE_OPTIONS = re.compile(r" (\((?:--static|static=), (?:--input|inputs=)\))$")


def split_advice(reason: str) -> tuple[str, str]:
    """What is not possible, and what a user can do, if that is said."""
    if (match := ADVICE.search(reason)) is not None:
        return reason[: match.start()], match[1][0].upper() + match[1][1:]
    if (match := SIZE_OPTIONS.search(reason)) is not None:
        return reason[: match.start()], f"Give numbers {match[1]}"
    return reason, ""


def show_problems(problems: Sequence[Problem]) -> Iterator[str]:
    """What cannot be converted, a line each.

    What many operators are refused for is said only once, and last what helps several of them.
    """
    parts = [(p, *split_advice(p.reason)) for p in problems]
    counts_of = Counter(advice for _, _, advice in parts if advice)
    shared = [advice for advice, count in counts_of.items() if count > 1]
    by_reason: dict[str, list[Problem]] = {}
    for problem, what, advice in parts:
        short = replace(problem, reason=what) if advice in shared else problem
        by_reason.setdefault(short.reason, []).append(short)
    for reason, group in by_reason.items():
        if len(group) <= SHOWN_APART:
            yield from map(str, group)
            continue
        counts = Counter[str]()
        for problem in group:
            counts[problem.op] += problem.count
        operators = ", ".join(f"{op} ×{count}" for op, count in counts.most_common())
        names = [name for problem in group for name in problem.names]
        yield f"{operators} ({_show_names(names)}): {reason}"
    yield from (f"{advice}." for advice in shared)
    if any(UNREAD.search(p.reason) for p in problems):
        yield (
            "What has no rule can be given one (rules= in Python), be kept (--custom-domain or "
            "--keep-domain), or be cut off (--outputs)."
        )


def _show_names(names: Sequence[str]) -> str:
    """The first names of nodes."""
    return ", ".join(map(repr, names[:SHOWN_NAMES])) + (", …" if len(names) > SHOWN_NAMES else "")


class Unconvertible(SerdeError):
    """Nodes of a model that cannot be converted, all at once, in ``problems``.

    ``report`` is that of the conversion which failed, a ``serde.Report``.
    """

    report: Any = None

    def __init__(self, stage: str, problems: Sequence[Problem]) -> None:
        total = sum(p.count for p in problems)
        lines = (f"  {line}" for line in show_problems(problems))
        super().__init__(Listing([f"{stage}: {total} node(s) cannot be converted:", *lines]))
        self.stage, self.problems = stage, tuple(problems)

    def respell(self, change: Callable[[str], str]) -> None:
        """Change the texts that a reader is told, those of the report too."""
        super().respell(change)
        self.problems = tuple(p.respell(change) for p in self.problems)
        if self.report is not None:
            self.report.respell(change)


def require(condition: object, reason: str) -> None:
    """Refuse the current node unless ``condition`` holds."""
    if not condition:
        raise ConversionError(reason)


def show_error(error: BaseException) -> str:
    """The kind of an error and what it says; some of users fail to say it."""
    try:
        return f"{type(error).__name__}: {error}"
    except (Exception, SystemExit):
        return type(error).__name__


# What Python and NumPy say where a shape has more or fewer axes than it is taken apart into.
WRONG_COUNT = re.compile(r"values to unpack|zip\(\) argument \d|could not be broadcast together")


# What it says where a rule was called with fewer operands, or used one that is not there.
ABSENT = re.compile(r"missing \d+ required positional argument|^'NoneType' object ")
# What it says where an attribute, or a number in place of a tensor, is of another kind.
OTHER_KIND = re.compile(r"^'(int|float|bool|complex|str|tuple|list|dict)' object ")


def _describe_error(error: Exception, operands: Iterable[str]) -> str:
    """What an error that no rule foresaw comes to, of a node that reads ``operands``."""
    if isinstance(error, MemoryError):
        return OUT_OF_MEMORY
    if isinstance(error, RecursionError):
        return "nests too deep"
    read = ", ".join(operands)
    if read and (isinstance(error, IndexError) or WRONG_COUNT.search(str(error))):
        return f"does not take operands of so many axes: {read}. Give the shapes it takes (--input)"
    if ABSENT.search(str(error)) or (not read and isinstance(error, IndexError)):
        return f"lacks an operand that its attributes ask for; it reads {read or 'nothing'}"
    hint = f". Its operands may not fit it: {read}" if read else ""
    if kind := OTHER_KIND.match(str(error)):
        return f"has a value of a kind that it does not take, {kind[1]}{hint}"
    if isinstance(error, (ValueError, OverflowError)):
        return f"has a number that means nothing there: {str(error).removesuffix('.')}{hint}"
    return f"fails with {show_error(error)}{hint}"


def locate_error(
    error: Exception, stage: str, source: Source, operands: Iterable[str] = ()
) -> Exception:
    """The error, with the place where it arose; an error that no rule foresaw as one of ours.

    ``operands`` are the types and shapes of what the node there reads.
    """
    if isinstance(error, ConversionError):
        error.stage, error.source = error.stage or stage, error.source or source
    elif not isinstance(error, SerdeError):
        located = ConversionError(_describe_error(error, operands))
        located.stage, located.source, located.__cause__ = stage, source, error
        return located
    return error


Function = TypeVar("Function", bound=Callable[..., Any])
STANDARD = os.path.dirname(os.__file__)  # where Python's own library is
DEBUG = "SERDE_DEBUG"  # the variable of the environment that keeps whole tracebacks


def shorten_tracebacks(function: Function) -> Function:
    """A function whose errors end at the call of the user, without the way they took in serde.

    Frames of other code that it calls stay. ``$SERDE_DEBUG`` keeps all, and the causes.
    """

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except SerdeError as error:
            if os.environ.get(DEBUG):
                raise
            raise error.with_traceback(_select_frames(error.__traceback__)) from None

    return cast(Function, call)


def _select_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that is of other code than serde's and the standard library's."""
    frames = []
    while traceback is not None:
        frame = traceback.tb_frame
        file, name = frame.f_code.co_filename, str(frame.f_globals.get("__name__", ""))
        is_standard = file.startswith(STANDARD) and "-packages" not in file
        if name.partition(".")[0] != "serde" and not is_standard:
            frames.append(traceback)
        traceback = traceback.tb_next
    below = None
    for each in reversed(frames):
        below = TracebackType(below, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return below
