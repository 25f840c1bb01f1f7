"""Fuzz the readers for as long as asked, guided by coverage (atheris, ``pip install atheris``).

    python -m conformance.fuzz --seconds 1800 [--reader onnx] [--corpus FOLDER] [--findings FOLDER]
                               [--record]

Whatever an input ends in but success or a SerdeError, within 5 seconds of work and 2 GiB, is a
finding: kept in the findings folder as the input and a text that tells what happened. Inputs worth
keeping belong into ``tests/data/regressions``. ``--record`` enters the run into the record.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from . import record

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 1 << 16  # bytes of an input
PATIENCE = 300  # seconds for one input, on a busy machine, before its process is killed
TITLE = """# Fuzzing

Made by `python -m conformance.pages` from what runs recorded, on Python 3.11 and 3.12.

## Guided by coverage

`python -m conformance.fuzz --record`, the row of each reader by its last run.

Every input is read and converted with {seconds:g} seconds of work and {memory} GiB of memory
allowed. It has to end in success or in a `SerdeError`, and leave no file behind if it fails;
anything else is a finding. A *bare exception* is a refusal that says no more than what a rule
failed with: a message to improve. Inputs are guided by the coverage of `serde` and damaged as
bytes, as protobuf messages, as JSON or as text (`testing/fuzz/mutations.py`). What runs found so
far is in `tests/data/regressions`; a bounded slice of the same runs with the tests.

| reader | seconds | inputs run | converted | inputs kept | findings | bare exceptions |
|---|---:|---:|---:|---:|---:|---:|
"""


@dataclass
class Run:
    """What came of fuzzing one reader."""

    reader: str
    seconds: int = 0
    inputs: int = 0
    converted: int = 0
    kept: int = 0
    findings: int = 0
    smells: int = 0


CAMPAIGN = """
## Parsers alone, and grammars

`python -m conformance.campaign --record`, all runs so far together; coverage does not guide them.
`parse` damages samples as above and parses them in memory. `convert` makes well-formed models of
counts, repetition and nesting (`testing/fuzz/grammar.py`) and converts them. Findings are other
exceptions than `SerdeError`, more than 1 GiB of memory, files left behind, and more processor time
than {least:g} seconds and one for every {parses:,} bytes that are parsed, or {bytes:,} that are
converted. Seconds are processor time of one process; making the inputs
counts. What was found is fixed, and a file of `tests/data/regressions`.

| run | seconds | inputs | a second | succeeded | findings | bare exceptions |
|---|---:|---:|---:|---:|---:|---:|
"""


def page(
    rows: Mapping[str, Mapping[str, int]], campaign: Mapping[str, Mapping[str, float]]
) -> Iterator[str]:
    """The lines of docs/results/fuzzing.md."""
    from testing.fuzz.attempts import MEMORY, READERS, SECONDS

    yield TITLE.format(seconds=SECONDS, memory=MEMORY >> 30).rstrip()
    for reader in (r for r in READERS if r in rows):
        yield f"| {reader} | {' | '.join(f'{n:,}' for n in rows[reader].values())} |"
    yield from campaign_lines(campaign)
    yield ""


def campaign_lines(rows: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """The table of runs without coverage, with their sum."""
    from testing.fuzz.attempts import CONVERTED_PER_SECOND, LEAST_SECONDS, PARSED_PER_SECOND

    yield CAMPAIGN.format(
        least=LEAST_SECONDS, parses=PARSED_PER_SECOND, bytes=CONVERTED_PER_SECOND
    ).rstrip()
    fields = ("seconds", "inputs", "succeeded", "findings", "smells")
    total = {f: sum(row[f] for row in rows.values()) for f in fields}
    for name, row in {**rows, "all": total}.items():
        seconds, inputs, *others = (round(row[f]) for f in fields)
        numbers = (seconds, inputs, round(inputs / max(seconds, 1)), *others)
        yield f"| {name} | {' | '.join(f'{n:,}' for n in numbers)} |"


def main() -> int:
    """Run what the command line asks for; the exit code is 1 where something was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60, help="in all")
    parser.add_argument("--reader", action="append", help="only this one; may be given again")
    parser.add_argument("--corpus", type=Path, help="a folder of inputs for each reader")
    parser.add_argument("--findings", type=Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        fuzz(args.reader[0], args.seconds, args.corpus, args.findings)
    from testing.fuzz.attempts import READERS

    readers = args.reader or list(READERS)
    if unknown := sorted(set(readers) - set(READERS)):
        parser.error(f"no reader is called {', '.join(unknown)}; there are: {', '.join(READERS)}")
    home = Path(tempfile.mkdtemp(prefix="serde-fuzz-"))
    corpus, findings = args.corpus or home / "corpus", args.findings or home / "findings"
    print(f"inputs in {corpus}, findings in {findings}", flush=True)
    runs = [supervise(r, args.seconds / len(readers), corpus / r, findings) for r in readers]
    if args.record:
        by_reader = {run.reader: vars(run) for run in runs}
        rows = {r: {k: v for k, v in row.items() if k != "reader"} for r, row in by_reader.items()}
        record.write("fuzzing", record.rows("fuzzing") | rows)
    return int(any(run.findings for run in runs))


def supervise(reader: str, seconds: float, corpus: Path, findings: Path) -> Run:
    """Fuzz one reader in processes of their own; one that is killed is a finding, and replaced."""
    from testing.fuzz import samples

    corpus.mkdir(parents=True, exist_ok=True)
    findings.mkdir(parents=True, exist_ok=True)
    kept = ROOT / "tests" / "data" / "regressions"
    for data in (*samples.of(reader), *(p.read_bytes() for p in kept.glob(f"{reader}--*"))):
        (corpus / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    run, end = Run(reader), time.monotonic() + seconds
    log = findings / f"{reader}.log"
    while (left := end - time.monotonic()) > 1:
        start = time.monotonic()
        command = [sys.executable, "-m", "conformance.fuzz", "--child", "--reader", reader,
                   "--corpus", corpus.absolute(), "--findings", findings.absolute(),
                   "--seconds", str(int(left))]  # fmt: skip
        with open(log, "wb") as out:
            code = subprocess.call(command, stdout=out, stderr=subprocess.STDOUT, cwd=ROOT)
        text = log.read_text(errors="replace")
        run.seconds += round(time.monotonic() - start)
        run.inputs += max([int(n) for n in re.findall(r"^#(\d+)", text, re.MULTILINE)], default=0)
        run.converted += int((re.findall(r"^converted (\d+)", text, re.MULTILINE) or ["0"])[-1])
        if code:
            print(f"{reader}: a process ended with code {code}, see {log}", flush=True)
            log = findings / f"{reader}-{int(time.time())}.log"
        if time.monotonic() - start < 2:
            break  # it does not even begin
    run.kept = sum(1 for _ in corpus.iterdir())
    run.findings = sum(1 for p in findings.glob(f"{reader}--*") if p.suffix != ".txt")
    run.smells = sum(1 for p in findings.glob(f"smell-{reader}--*") if p.suffix != ".txt")
    print(run, flush=True)
    return run


def fuzz(reader: str, seconds: int, corpus: Path, findings: Path) -> None:
    """Fuzz one reader in this process, until the time is up."""
    import atheris

    with atheris.instrument_imports(include=["serde"]):
        from serde.errors import SerdeError
        from testing.fuzz import attempts, mutations, samples

        home = Path(tempfile.mkdtemp(prefix="serde-fuzz-"))
        seeds = samples.of(reader)
        for data in seeds:
            with suppress(SerdeError):
                attempts.READERS[reader](data, Path(tempfile.mkdtemp(dir=home)))  # imports all
    converted = 0

    def try_one(data: bytes) -> None:
        nonlocal converted
        try:
            refusal = attempts.attempt(reader, data, home)
        except BaseException as error:
            frames = traceback.extract_tb(error.__traceback__)
            own = [f for f in frames if f.filename.startswith(str(ROOT))] or frames
            where = f"{Path(own[-1].filename).stem}-{own[-1].name}"
            keep(findings, f"{reader}--{type(error).__name__}-{where}", data,
                 "".join(traceback.format_exception(error)))  # fmt: skip
            return
        if refusal is None:
            converted += 1
            if converted % 100 == 0:
                print(f"converted {converted}", flush=True)
        elif (bare := attempts.smell(refusal)) is not None:
            keep(findings, f"smell-{reader}--{bare}", data, str(refusal))

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        random = Random(seed)
        if random.random() < 0.3:
            return atheris.Mutate(data, most)
        return mutations.step(reader, data, seeds, random)[:most]

    with attempts.limited_memory():
        atheris.Setup(
            [sys.argv[0], str(corpus), f"-max_total_time={seconds}", f"-timeout={PATIENCE}",
             f"-report_slow_units={PATIENCE}",
             "-rss_limit_mb=0", f"-max_len={LONGEST}", f"-artifact_prefix={findings}/{reader}--",
             "-print_final_stats=1"],
            try_one, custom_mutator=mutate,
        )  # fmt: skip
        atheris.Fuzz()


def keep(folder: Path, name: str, data: bytes, text: str) -> None:
    """Keep the smallest input that ended in one way, and what it ended in."""
    name = re.sub(r"[^\w.-]", "_", name)[:150]
    old = folder / name
    if old.exists() and old.stat().st_size <= len(data):
        return
    old.write_bytes(data)
    (folder / f"{name}.txt").write_text(text[:20_000], errors="replace")


if __name__ == "__main__":
    sys.exit(main())
