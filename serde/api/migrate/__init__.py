"""Many models at once, each converted in a process of its own."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from serde import __version__
from serde.api.migrate import table
from serde.api.migrate.engines import count_jobs, run_jobs
from serde.api.migrate.job import Job, Row
from serde.api.migrate.journal import Journal
from serde.api.migrate.model_options import OF_CONVERT, choose_options, read_config
from serde.api.migrate.own_results import JOURNAL, TABLES
from serde.api.migrate.sources import ModelSource, find_models, plan_targets, true_url
from serde.api.report.page import render_frame
from serde.errors import TargetRefused, UsageError, escape_controls
from serde.io.command_files import within_command
from serde.io.filesystems import is_url, local_path
from serde.plugins import STANDARD, get_format, list_packages, read_classes, write_classes
from serde.plugins.command_options import MigrateOptions
from serde.plugins.keywords import with_options

SECONDS, MEMORY = 600, 8192  # allowed to each model unless told otherwise; MiB
MigrationProgress = Callable[[Row, int, int], None]


@dataclass(repr=False)
class Migration:
    """What became of all models; ``resumed`` of them were done before.

    ``skipped`` are files that may have been meant, with the reason why they are no models; ``left``
    is how many models were not reached.
    """

    folder: str
    rows: list[Row] = field(default_factory=list)
    resumed: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    left: int = 0

    @property
    def ok(self) -> bool:
        """Whether every model was converted, and none was found wrong."""
        return all(row.ok for row in self.rows)

    @property
    def counts(self) -> dict[str, int]:
        """How many models came out in each way."""
        return table.count_statuses(self.rows)

    @property
    def summary(self) -> str:
        """How many models came out in each way, in a line."""
        counts = ", ".join(f"{n} {status}" for status, n in self.counts.items())
        before = f" ({self.resumed} done before)" if self.resumed else ""
        return f"{len(self.rows)} model{'' if len(self.rows) == 1 else 's'}: {counts}{before}"

    def __str__(self) -> str:
        wrong = (f"{r.status} {r.source}: {r.reason}" for r in self.rows if not r.ok)
        return "\n".join(map(escape_controls, (self.summary, *wrong)))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table in a frame, as a notebook shows it."""
        return render_frame(self.to_html())

    @property
    def missing_operators(self) -> list[tuple[str, int, int, str]]:
        """The operators in the way: name, models, nodes, a reason."""
        return table.group_missing(self.rows)

    def to_json(self) -> str:
        """The table as JSON; docs/reference/report.md lists its fields."""
        return table.as_json(self.rows, self.skipped)

    def to_csv(self) -> str:
        """The table as CSV, a line for each model."""
        return table.as_csv(self.rows)

    def to_html(self) -> str:
        """The table as a page."""
        return table.as_html(self.rows, self.folder, self.skipped)


@with_options(lambda: [*read_classes(), *write_classes(), *OF_CONVERT, MigrateOptions])
def migrate(
    sources: str | Iterable[str], folder: str, *, to: str = STANDARD, verify: bool = False,
    jobs: int | None = None, dask: str | None = None, max_seconds: int = SECONDS,
    max_memory: int = MEMORY, reports: bool = False, again: bool = False, config: Any = None,
    progress: MigrationProgress | None = None, **options: Any,
) -> Migration:  # fmt: skip
    """Convert many models; whatever becomes of one, the others go on.

    What was converted or refused before, by the same serde with the same options, is not done
    again: ``folder`` holds a journal. Its tables, ``migration.html``, ``.json`` and ``.csv``, are
    written at the end.

    Args:
        sources: folders, globs, archives, model files and URLs (of fsspec); or one.
        folder: where results go, in the folders of their sources; a path or a URL.
        to: the format to write.
        verify: whether each result is compared with its source.
        jobs: how many models at a time; if left out, one for each processor, or one where joblib
            is not installed.
        dask: the address of a Dask scheduler, or ``local`` for a cluster of this machine's own.
        max_seconds, max_memory: what each model may take; MiB.
        reports: whether a report is written beside each result.
        again: whether models are converted that were done before.
        config: options of some models: a TOML, JSON or YAML file, or a mapping, of patterns of
            paths below a source to options. They apply over ``options``.
        progress: called with each row, how many are done, and of how many.
        options: those of ``convert``; those of reading apply where the source's format has them.

    Raises:
        UsageError: for sources without models, and two that would write one file.
        MissingDependency: naming the package that a URL or an engine needs.
        OSError: where the journal or the tables cannot be written, once all models are done.
        KeyboardInterrupt: as the user asks; both have the ``migration`` so far.
    """
    into = get_format(to)
    folder = local_path(os.fspath(folder))
    opts = _check_options(options)
    tables = [] if config is None else read_config(config, into)
    skipped: dict[str, str] = {}
    journal = Journal(folder)
    sources = [sources] if isinstance(sources, (str, os.PathLike)) else sources
    models = find_models(map(os.fspath, sources), folder, skipped, journal.list_contained)
    for pattern in (t.pattern for t in tables if not any(t.matches(m.relative) for m in models)):
        skipped[pattern] = f"the pattern of {_name_config(config)} matches no model"
    targets = {m: _join(folder, name) for m, name in plan_targets(models, into).items()}
    _refuse_sources(models, [*targets.values(), *(_join(folder, n) for n in (JOURNAL, *TABLES))])
    count = jobs or count_jobs(dask)
    threads = max(1, (os.cpu_count() or 1) // count)
    done: list[Row] = []
    ahead: list[Job] = []
    for model, path in targets.items():
        chosen = {**opts, **_check_options(choose_options(tables, model.relative))}
        compares = chosen.pop("verify", verify)
        job = Job(
            model, path, chosen, to, compares, "html" if reports else "", max_seconds, max_memory,
            threads,
        )  # fmt: skip
        job = replace(job, key=_key_of(job), spared=tuple(journal.list_spared(path)))
        known = None if again else journal.find(job)
        (done.append(known) if known is not None else ahead.append(job))
    result = Migration(folder, [*done], len(done), dict(sorted(skipped.items())))
    journal.begin(ahead)
    try:
        _run_all(result, ahead, journal, count, dask, progress)
        _save(result, journal)
    except (OSError, KeyboardInterrupt, SystemExit) as error:
        error.migration = result  # type: ignore[attr-defined, union-attr]
        raise
    return result


def _name_config(config: Any) -> str:
    return "config" if isinstance(config, Mapping) else os.fspath(config)


def _run_all(
    result: Migration, ahead: Sequence[Job], journal: Journal, count: int, dask: str | None,
    progress: MigrationProgress | None,
) -> None:  # fmt: skip
    """Run the jobs; what is done is kept in the journal, and in the tables where it is stopped."""
    failed: OSError | None = None
    total = len(result.rows) + len(ahead)
    result.left = len(ahead)
    try:
        for row in run_jobs(ahead, min(count, len(ahead)), dask) if ahead else ():
            result.rows.append(row)
            result.left -= 1
            try:
                journal.enter(row)
            except OSError as error:  # a full disk: the others go on
                failed = failed or error
            if progress is not None:
                progress(row, len(result.rows), total)
    except (KeyboardInterrupt, SystemExit):
        with suppress(OSError):
            _save(result, journal)
        raise
    if failed is not None:
        raise failed


def _save(result: Migration, journal: Journal) -> None:
    """Write the tables of what is done."""
    result.rows.sort(key=lambda row: row.source)
    journal.close()
    tables = result.to_html(), result.to_json(), result.to_csv()
    for name, text in zip(TABLES, tables, strict=True):
        journal.write(name, text)


def _check_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are given, as they are sent to another process.

    Raises:
        UsageError: for one that cannot be, as it is no text, number or mapping.
    """
    opts = {k: v for k, v in options.items() if v is not None}
    for name, value in opts.items():
        try:
            json.dumps(value)
        except TypeError:
            raise UsageError(f"{name} cannot be given for many models: {value!r}") from None
    return opts


def _join(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if is_url(folder) else os.path.join(folder, name)


def _refuse_sources(models: Iterable[ModelSource], targets: Iterable[str]) -> None:
    """Refuse results that would take the place of a model, before any work is done."""
    with within_command() as files:
        urls = {url for m in models if m.is_remote for url in (m.path, *m.siblings)}
        for model in models:
            files.enter(model.path)
        for target in targets:
            files.refuse_target(target)
            if urls and is_url(target) and true_url(target) in urls:
                raise TargetRefused(f"{target} is read by this command: write to another folder")


def _key_of(job: Job) -> str:
    """What a row is known by: another source, other options or other packages give another."""
    conditions = [
        __version__, list_packages(), job.source.path, job.source.stamp, job.target, job.to_format,
        job.verify, bool(job.report), sorted(job.options.items()),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(conditions).encode()).hexdigest()
