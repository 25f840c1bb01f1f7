"""Functions are named by verb phrases: a participle alone (``kept``, ``reading``) names nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("serde", "backends", "formats", "frontends", "bridges")
# Participles that do not end in -ed or -ing. Those that are verbs or nouns as well are left out:
# cut, put, read, set, split.
IRREGULAR = frozenset(
    "begun bound bought brought built chosen cleft drawn driven fallen felt found frozen given gone "
    "grown held hidden kept known laid left lent lost made meant met overridden paid proven said "
    "sent shaken shown sought spent spoken spread stood sunk sworn taken taught thought told torn "
    "understood undone worn wound written".split()
)
PREFIXES = ("", "un", "re", "mis", "over")
# Words that end like participles and are verbs, nouns or names of operators.
ALLOWED = frozenset(
    "bed embed exceed feed need proceed seed speed "  # verbs and nouns in -ed
    "bring nothing ping ring string "  # verbs and nouns in -ing
    "mapping "  # the type
    "embedding"  # the operator
    .split()
)  # fmt: skip


def is_participle(word: str) -> bool:
    """Whether an identifier of one word is a participle, by its ending or by the list."""
    if word in ALLOWED or not re.fullmatch("[a-z]+", word):
        return False
    if any(word.startswith(p) and word[len(p) :] in IRREGULAR for p in PREFIXES):
        return True
    return bool(re.search(r"[a-z]{2}(ed|ing)$", word))


def bare_participles(path: Path) -> Iterator[str]:
    """The functions of a file, methods and inner ones included, that a participle names."""
    for node in ast.walk(ast.parse(path.read_text())):
        is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if is_function and node.name[:2] != "__" and is_participle(node.name.lstrip("_")):
            yield node.name


def test_no_function_is_named_by_a_bare_participle():
    offenders = {
        str(path.relative_to(ROOT)): names
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (names := " ".join(sorted(bare_participles(path))))
    }
    assert not offenders, "a function is named by a verb phrase"


def test_verbs_and_nouns_are_no_participles():
    for word in "kept made spelled reading taken unkept rebuilt".split():
        assert is_participle(word), word
    for word in "read split seed bring string infer_types read_fixed embedding".split():
        assert not is_participle(word), word


# Words that a variable may stand for anything by: what it holds is a noun.
VAGUE = frozenset("found given held made own taken wide".split())


def vague_variables(path: Path) -> Iterator[str]:
    """The variables, parameters and fields of a file that a vague word names, with their lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.attr
        else:
            continue
        if name in VAGUE:
            yield f"{path.relative_to(ROOT)}:{node.lineno} {name}"


def test_variables_say_what_they_hold():
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    offenders = [variable for path in paths for variable in vague_variables(path)]
    assert not offenders, "a variable is named by a noun that says what it holds"
