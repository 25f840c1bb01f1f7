"""Tokens of Relay's text form.

TVM prints names raw: ``%input:0``, ``%conv.1/weight``, ``%a b``, ``@my-fn``. A name is read up to
what has to follow it where it is declared, and as the longest name in scope where it is used.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Container

from serde.errors import MalformedFile

KEYWORDS = frozenset("let fn def if else type match extern free_var ref ref_read ref_write".split())
END = "the end of the text"

_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
    %(?P<graph>\d+)
  | %(?P<local>[A-Za-z_][\w/]*)
  | (?P<comment>/\*|//)
  | (?P<number>-?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?:[fi]\d*)?|(?:inf|nan)f(?:\d\d)?)(?!\w))
  | (?P<meta>meta\[[^\]\n]*\]\[\d+\])
  | (?P<word>[A-Za-z_](?:\w|/(?=\w))*(?:\.[A-Za-z_](?:\w|/(?=\w))*)*)
  | (?P<field>\.\d+)
  | (?P<string>"[^"]*")
  | @(?P<global>[A-Za-z_][\w/]*)
  | (?P<mark>->|=>|==|!=|<=|>=|:=|[][(){},;:=+*/<>?^#-])
  | (?P<odd>[%@])
  )""",
    re.VERBOSE | re.ASCII,
)
_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT_MARK = re.compile(r"/\*|\*/")
# Declared names: before an annotation as TVM prints it; plain ones; any, before what may follow.
_ANNOTATED = re.compile(r'%([^,()=\n"{]{0,250}?)(?=: )')
_PLAIN = re.compile(r"%([A-Za-z_][\w/]*)(?=\s*(?:[,)={]|/[*/]|:\s*[A-Za-z_(]))", re.ASCII)
_ANY = re.compile(r'%([^,()=\n"{]{0,250}?)(?= {0,9}(?:/\*|[,)={]))')
_DEFINED = re.compile(r"^[ \t]*def[ \t]+@([^(\[\n=]{1,250}?) {0,9}[(\[]", re.MULTILINE)
_DEFINED_NAME = re.compile(r"@([^(\[\n=]*)")
_RUN = re.compile(r"[^\s,()]{0,250}")
_PROJECTION = re.compile(r"(.*?)(?:\.\d+)+")
_OF_NAME = re.compile(r"[\w/]", re.ASCII)
_IDENTIFIER = re.compile(r"[A-Za-z_][\w/]*", re.ASCII)


class Lexer:
    """The current token: ``kind``, ``value``, where it starts, and the comments before it.

    ``kind`` is ``graph`` (``%0``), ``local``, ``global``, ``number``, ``meta``, ``word``, ``field``
    (``.0``), ``string``, the word itself for keywords, the mark itself for marks, or empty at the
    end. ``pos`` is where the token ends.
    """

    def __init__(self, text: str, path: str, at: int = 0) -> None:
        self.text, self.path, self.pos = text, path, at
        self.kind = self.value = self.comment = ""
        self.start = at
        self.locals: Container[str] = ()
        self.odd_lengths: list[int] = []  # of names that are no plain identifiers, longest first
        self.globals: frozenset[str] = frozenset()
        self._lines: list[int] | None = None

    def advance(self) -> None:
        """Go to the next token."""
        self.comment = ""
        while True:
            match = _TOKEN.match(self.text, self.pos)
            if match is None:
                return self._finish()
            kind = match.lastgroup or ""
            self.pos = match.end()
            self.start = match.start(kind)
            if kind != "comment":
                break
            self._skip_comment(match[kind])
        value = match[kind]
        if kind == "mark" or (kind == "word" and value in KEYWORDS):
            kind = value
        elif kind == "local":
            self.start -= 1
            if self.odd_lengths:
                value = self._match_longest(self.locals, value)
        elif kind == "graph":
            self.start -= 1
        elif kind == "global" or kind == "odd":
            self.start -= kind == "global"
            kind, value = self._read_global(kind, value)
        self.kind, self.value = kind, value
        return None

    def _finish(self) -> None:
        space = _SPACE.match(self.text, self.pos)
        self.pos = self.start = space.end() if space else self.pos
        if self.pos < len(self.text):
            if self.text[self.pos] == '"':
                raise self.error("the string that begins here has no end")
            raise self.error(f"{self.text[self.pos]!r} means nothing here")
        self.kind = self.value = ""

    def _skip_comment(self, mark: str) -> None:
        if mark == "//":
            end = self.text.find("\n", self.pos)
            self.pos = len(self.text) if end < 0 else end
            return
        begin, depth = self.pos, 1
        while depth:
            match = _COMMENT_MARK.search(self.text, self.pos)
            if match is None:
                raise self.error("the comment that begins here has no end")
            depth += 1 if match[0] == "/*" else -1
            self.pos = match.end()
        self.comment = self.comment or self.text[begin : self.pos - 2]

    def _read_global(self, kind: str, value: str) -> tuple[str, str]:
        if self.text[self.start] == "%":
            raise self.error("a name begins with a letter or is a number")
        if self.globals or kind == "odd":
            self.pos = self.start + 1
            value = self._match_longest(self.globals, value if kind == "global" else "")
        if not value:
            raise self.error("no function of this name is defined")
        return "global", value

    def _match_longest(self, names: Container[str], plain: str) -> str:
        """The longest of ``names`` that is written here."""
        begin = self.start + 1
        run = _RUN.match(self.text, begin)
        name = run[0] if run else ""
        if name not in names:
            candidates = (self.text[begin : begin + n] for n in self.odd_lengths)
            name = next(
                (c for c in candidates if c in names and self._is_whole_name(begin, c)), plain
            )
        self.pos = begin + len(name)
        return name

    def _is_whole_name(self, begin: int, name: str) -> bool:
        """Whether no plain name goes on where ``name`` ends."""
        end = begin + len(name)
        return not (_OF_NAME.match(self.text, end - 1) and _OF_NAME.match(self.text, end))

    def read_declared_name(self) -> str:
        """Read the name of the variable declared at the current token; go on behind it."""
        for pattern in (_ANNOTATED, _PLAIN, _ANY):
            match = pattern.match(self.text, self.start)
            if match is not None and match[1] and "/*" not in match[1]:
                break
        else:
            raise self.error("a variable's name was expected")
        name = match[1]
        self.pos = match.end()
        if not _IDENTIFIER.fullmatch(name):
            name = name.rstrip()
            self._add_odd_length(name)
        self.advance()
        return name

    def read_defined_name(self) -> str:
        """Read the name of the function defined at the current token; go on behind it."""
        match = _DEFINED_NAME.match(self.text, self.start)
        name = match[1].strip() if match else ""
        if match is None or not name:
            raise self.error("a function's name was expected")
        self.pos = match.end()
        self.advance()
        return name

    def find_globals(self) -> None:
        """Note names of functions that are no plain identifiers, wherever they are defined."""
        odd = {n for n in _DEFINED.findall(self.text) if not _IDENTIFIER.fullmatch(n)}
        self.globals = frozenset(odd)
        for name in odd:
            self._add_odd_length(name)

    def _add_odd_length(self, name: str) -> None:
        if len(name) not in self.odd_lengths:
            self.odd_lengths = sorted({*self.odd_lengths, len(name)}, reverse=True)

    def find_tuple_of(self, name: str) -> str | None:
        """The name of another variable of which ``name`` would be a field."""
        match = _PROJECTION.fullmatch(name)
        return match[1] if match and match[1] in self.locals else None

    def is_followed_by(self, pattern: re.Pattern[str]) -> bool:
        """Whether the text behind the current token matches."""
        return pattern.match(self.text, self.pos) is not None

    def jump(self, at: int) -> None:
        """Go on with the token at offset ``at``."""
        self.pos = at
        self.advance()

    def locate(self, at: int) -> tuple[int, int]:
        """Line and column of an offset, from 1."""
        if self._lines is None:
            self._lines = [m.start() for m in re.finditer("\n", self.text)]
        line = bisect_left(self._lines, at)
        return line + 1, at - (self._lines[line - 1] if line else -1)

    def error(self, reason: str, at: int | None = None) -> MalformedFile:
        """The error to raise about the current token, or the one at ``at``."""
        line, column = self.locate(self.start if at is None else at)
        return MalformedFile(self.path, reason, f"line {line}, column {column}")

    def expected_error(self, what: str) -> MalformedFile:
        """The error to raise where ``what`` should be."""
        return self.error(f"{what} was expected, not {self.describe_token()}")

    def describe_token(self) -> str:
        """The current token as users know it."""
        return repr(self.text[self.start : self.pos][:40]) if self.kind else END
