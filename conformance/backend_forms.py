"""The page of what backends lack: the forms of their targets, and where documents differ."""

from __future__ import annotations

from collections.abc import Iterator

from serde.backends.description import Backend, backend_names, get_backend
from serde.legalize.target import Target

HEAD = """# Backends

<!-- Made by `python -m conformance.pages`; do not edit. -->

What the backends of `serde check --backend NAME` and `serde partition --backend NAME` lack. A
**form** is an operator in a configuration that a backend lacks. It is *rewritten* as operators that
the backend has, or *refused*. What a target's rules do with whole operators is in
[consumers.md](../how-to/consumers.md). [partition-a-model.md](../how-to/partition-a-model.md) tells
how to describe another backend.
"""


def page() -> Iterator[str]:
    """The lines of docs/reference/backends.md."""
    yield from HEAD.splitlines()
    for name in backend_names():
        yield from describe(get_backend(name))
    yield ""


def describe(backend: Backend) -> Iterator[str]:
    """One backend."""
    target = backend.target
    operators = f"{len(target.supports or ())} operators at opset {target.opset}"
    yield ""
    yield f"## {backend.name}"
    yield ""
    yield f"Its table is {target.source}: {operators}."
    if backend.documentation:
        yield f"Its [document]({backend.documentation}) is of {backend.version} ({backend.date})."
    if backend.documented is not None:
        yield from compare(target, backend.documented)
    rows = list_forms(target)
    if rows:
        yield ""
        yield "| with | it is | operators |"
        yield "|---|---|---|"
        for (what, becomes), ops in rows.items():
            is_any = set(ops) == set(target.supports or ())
            yield f"| {what} | {becomes} | {'all' if is_any else ', '.join(ops)} |"


def compare(target: Target, documented: Target) -> Iterator[str]:
    """Where the document and what holds list other operators."""
    own, others = set(target.supports or ()), set(documented.supports or ())
    for what, ops in (
        ("The document lists, and these do not hold", others - own),
        ("The document does not list, and these hold", own - others),
    ):
        if ops:
            yield f"{what}: {', '.join(sorted(ops))}."


def list_forms(target: Target) -> dict[tuple[str, str], list[str]]:
    """The operators of each form, and what becomes of it."""
    rows: dict[tuple[str, str], list[str]] = {}
    for lacks, of in ((target.lacks, ""), (target.lacks_results, " as a result of the model")):
        for op in sorted(lacks):
            for form in lacks[op]:
                becomes = "refused" if form.rewrite is None else "rewritten"
                ops = rows.setdefault((f"{form.what}{of}", becomes), [])
                if op not in ops:
                    ops.append(op)
    return rows
