"""The process that converts one model of many: it reads an order, and writes an answer."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from serde.api import convert
from serde.api.contained_models import unpack_model
from serde.api.migrate.model_options import FROM
from serde.api.report import Report
from serde.api.source_names import name_source
from serde.errors import (
    OUT_OF_MEMORY,
    MalformedFile,
    MissingDependency,
    SerdeError,
    TargetRefused,
    Unconvertible,
    UnknownFormat,
    show_error,
    speak_of_flags,
)
from serde.io.child_process import FILE_SIZE, end_with_parent, limit_process
from serde.io.command_files import stamp_file, within_command
from serde.plugins.options import ReadOptions, list_options

LONGEST_REASON = 600  # characters
# Errors of a system that another attempt may not meet.
OF_MACHINE = frozenset({errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN,
                        errno.EINTR, errno.ETIMEDOUT, errno.EACCES, errno.EPERM})  # fmt: skip
OF_OTHERS = "there, and no migration into this folder has written it"


def main() -> None:
    """Carry out the order on the standard input."""
    order = json.loads(sys.stdin.read())
    end_with_parent(order["parent"])
    limit_process(order["memory"], file_size=FILE_SIZE)
    answer = carry_out(order)
    with open(order["answer"], "w", encoding="utf-8") as file:
        json.dump(answer, file)
    sys.stdout.flush()
    os._exit(0)  # frameworks may crash as they are unloaded


def carry_out(order: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the model; the fields of its row."""
    with within_command() as files:
        for path in order["spared"]:
            with suppress(FileNotFoundError):  # gone meanwhile
                files.spare(path, OF_OTHERS)
        answer = _convert(order)
    inside = os.path.dirname(order["answer"]) + os.sep  # what is fetched, and copies
    read = {f.path: f.stamp for f in files.read_before_writing()}
    written = files.written.values()
    return answer | {
        "read": {path: stamp for path, stamp in read.items() if _is_kept(path, inside)},
        "absent": sorted({os.path.abspath(path) for path in files.absent}),
        "written": {path: stamp_file(path) for path in written if _is_kept(path, inside)},
    }


def _is_kept(path: str, inside: str) -> bool:
    """Whether a file is none of those that are there during the conversion only."""
    return not path.startswith(inside) and os.path.exists(path)


def _convert(order: Mapping[str, Any]) -> dict[str, Any]:
    source, report, stages = order["source"], None, list[str]()
    try:
        with speak_of_flags(), unpack_model(source) as path:  # flags are in the tables
            report = convert(
                path, order["target"], to_format=order["to_format"], verify=order["verify"],
                progress=stages.append, **keep_own_options(path, order["options"]),
            )  # fmt: skip
            name_source(report, path, source)
        answer = describe(report)
    except Unconvertible as error:
        report = error.report
        missing = [{"op": p.op, "count": p.count, "reason": p.reason} for p in error.problems]
        shown = ", ".join(f"{p.op} ×{p.count}" for p in error.problems)
        is_short = any(p.reason.startswith(OUT_OF_MEMORY) for p in error.problems)
        status = "out of memory" if is_short else "refused"
        answer = {"status": status, "reason": shown, "missing": missing}
        answer["format"] = report.source_format if report else ""
    except (MalformedFile, UnknownFormat) as error:
        reason = str(error).removeprefix(source).lstrip(":, ")
        answer = {"status": _find_cause(error) or "unreadable", "reason": reason}
    except SerdeError as error:
        is_other = isinstance(error, (TargetRefused, MissingDependency))  # than of the model
        answer = {"status": "failed" if is_other else "refused", "reason": str(error)}
        if "verify" in stages:  # which comes after writing
            answer = {"status": "converted", "reason": f"not verified: {error}"}
    except OSError as error:
        answer = {"status": "failed", "reason": str(error)}
    except MemoryError:
        answer = {"status": "out of memory", "reason": "--max-memory allows more"}
    except Exception as error:
        answer = {"status": "failed", "reason": show_error(error)}
    if report is not None and order["report"]:
        _save_report(report, order["report"], answer)
    answer["reason"] = answer.get("reason", "")[:LONGEST_REASON]
    return answer


def _save_report(report: Report, path: str, answer: dict[str, Any]) -> None:
    """Write a report; where that fails the result stays, and the answer says so."""
    try:
        report.save(path)
    except (SerdeError, OSError) as error:
        answer["reason"] = "; ".join(filter(None, (answer.get("reason"), f"no report: {error}")))


def _find_cause(error: BaseException | None) -> str | None:
    """The status of a model that only the machine was in the way of, at that moment."""
    while error is not None:
        if isinstance(error, MemoryError):
            return "out of memory"
        if isinstance(error, OSError) and error.errno in OF_MACHINE:
            return "failed"
        error = error.__cause__
    return None


def keep_own_options(source: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that apply to a source: others of reading are those of other formats."""
    from pathlib import Path

    from serde.plugins import format_of, get_format, installed_formats

    named = options.get(FROM[0])
    fmt = get_format(named) if named else format_of(Path(source))
    known = {*list_options(ReadOptions), *list_options(fmt.read_options)}
    reading = {name for f in installed_formats() for name in list_options(f.read_options)}
    return {k: v for k, v in options.items() if k in known or k not in reading}


def describe(report: Report) -> dict[str, Any]:
    """The row of a model that was converted."""
    verification = report.verification
    answer: dict[str, Any] = {
        "status": "converted", "format": report.source_format,
        "nodes": sum(report.operators.values()), "parameters": report.parameters,
    }  # fmt: skip
    if verification is None:
        return answer
    errors = [o.max_rel for o in verification.outputs if o.max_rel == o.max_rel]
    answer["max_rel"] = max(errors, default=None)
    if not verification.done:
        answer["reason"] = verification.statement
    elif verification.ok:
        answer["status"] = "verified"
    else:
        wrong = [o for o in verification.outputs if not o.passed]
        answer |= {"status": "differs", "reason": f"{wrong[0].name}: {wrong[0].reason}"}
    return answer
