"""Fuzz without coverage, as fast as one process can: parsers alone, and models of a grammar.

    python -m conformance.campaign --seconds 1200 [--first SEED] [--only WORD] [--findings FOLDER]
        [--record]

``parse READER`` damages samples and parses them in memory; ``convert READER`` makes models of
counts, repetition and nesting (``testing/fuzz/grammar.py``) and converts them. Both have to end in
success or a SerdeError, with work in proportion to the bytes of the input
(``attempts.allowed_seconds``) and 1 GiB of memory. An input is known by its seed. ``--only`` runs
the kinds whose name has the word; ``--record`` adds the run to the record.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random

from serde.errors import SerdeError
from testing.fuzz import attempts, grammar, mutations, parsing, samples

from . import record
from .fuzz import ROOT, keep

CELL = "fuzzing-campaign"
MEMORY = 1 << 30
BATCH = 200  # inputs run before it is the next kind's turn


@dataclass
class Count:
    """What came of one kind of run."""

    seconds: float = 0.0
    inputs: int = 0
    succeeded: int = 0
    findings: int = 0
    smells: int = 0


Kind = tuple[Callable[[Random], bytes], Callable[[bytes], SerdeError | None], int]


def kinds(home: Path) -> dict[str, Kind]:
    """How inputs of each kind are made and run, and how many bytes may take a second."""
    by_name: dict[str, Kind] = {}
    for reader in parsing.PARSERS:
        seeds = samples.of(reader)
        make = partial(mutations.mutate, reader, seeds)
        by_name[f"parse {reader}"] = make, partial(parse, reader), attempts.PARSED_PER_SECOND
    for reader in grammar.MAKERS:
        run = partial(attempts.attempt, reader, folder=home)
        by_name[f"convert {reader}"] = (
            partial(grammar.make, reader),
            run,
            attempts.CONVERTED_PER_SECOND,
        )
    return by_name


def parse(reader: str, data: bytes) -> SerdeError | None:
    """Parse an input; return the refusal if there was one."""
    try:
        with attempts.alarm(attempts.SECONDS):
            parsing.parse(reader, data)
    except SerdeError as error:
        return error
    except attempts.TooSlow:
        raise attempts.Broken(f"takes more than {attempts.SECONDS:g} seconds") from None
    return None


def run_batch(name: str, kind: Kind, first: int, count: Count, findings: Path) -> None:
    """Run inputs of one kind, by their seeds from ``first`` on."""
    make, run, rate = kind
    start = time.process_time()
    for seed in range(first, first + BATCH):
        data = make(Random(seed))
        begun = time.process_time()
        count.inputs += 1
        try:
            refusal = run(data)
            took = time.process_time() - begun
            if took > attempts.allowed_seconds(len(data), rate):
                raise attempts.Broken(f"{took:.1f} seconds for {len(data)} bytes")
        except Exception as error:
            count.findings += 1
            frames = traceback.extract_tb(error.__traceback__)
            own = [f for f in frames if f.filename.startswith(str(ROOT))] or frames
            where = f"{name}--{type(error).__name__}-{own[-1].name}-{own[-1].lineno}"
            text = "".join(traceback.format_exception(error))
            keep(findings, where, data, f"seed {seed}\n{text}")
            print(f"{name}: seed {seed}: {type(error).__name__}: {error}"[:300], flush=True)
            continue
        count.succeeded += refusal is None
        bare = attempts.smell(refusal)
        if bare is not None:
            count.smells += 1
            op = re.sub(r"\W+", " ", str(refusal).split("×")[0])[-60:]
            keep(findings, f"smell-{name}--{bare}-{op}", data, f"seed {seed}\n{refusal}")
    count.seconds += time.process_time() - start


def main() -> int:
    """Run kind after kind until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", default="", help="a word of the names of kinds")
    parser.add_argument("--findings", type=Path)
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    findings = args.findings or Path(tempfile.mkdtemp(prefix="serde-findings-"))
    findings.mkdir(parents=True, exist_ok=True)
    memory = Path("/dev/shm")
    home = Path(tempfile.mkdtemp(prefix="serde-fuzz-", dir=memory if memory.is_dir() else None))
    print(f"findings in {findings}", flush=True)
    every = {name: kind for name, kind in kinds(home).items() if args.only in name}
    counts = {name: Count() for name in every}
    end, first = time.monotonic() + args.seconds, args.first
    with attempts.limited_memory(MEMORY):
        while time.monotonic() < end:
            # Parsers are far quicker: they get the same time by more batches.
            for name, kind in every.items():
                turn, at = time.monotonic() + 4, counts[name].inputs
                while time.monotonic() < turn:
                    run_batch(name, kind, first + at, counts[name], findings)
                    at += BATCH
    for name, count in counts.items():
        rate = count.inputs / count.seconds if count.seconds else 0
        print(f"{name}: {asdict(count)}, {rate:.0f} a second")
    if args.record:
        add_to_record(counts)
    return int(any(count.findings for count in counts.values()))


def add_to_record(counts: dict[str, Count]) -> None:
    """Add a run to what runs came to so far."""
    rows = record.rows(CELL) if record.path_of(CELL).exists() else {}
    for name, count in counts.items():
        before = rows.get(name, {})
        rows[name] = {k: round(before.get(k, 0) + v, 1) for k, v in asdict(count).items()}
    record.write(CELL, rows)


if __name__ == "__main__":
    raise SystemExit(main())
