"""Run programs seed after seed, in a process that a runtime's crash costs one program only."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from conformance import record

CELL = "differential"
KINDS = ("right", "unstable", "refused", "not run", "known", "crashed", "differs")
ROOT = Path(__file__).resolve().parents[2]
REASONS = 25  # that are kept of a direction


@dataclass
class Count:
    """What came of one direction."""

    seconds: float = 0.0
    graphs: int = 0
    nodes: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, nodes: int, why: str) -> None:
        """Count a program."""
        self.graphs += 1
        self.nodes += nodes
        self.kinds[kind] += 1
        if kind in ("refused", "known"):
            self.refusals.update(simplify(part, kind) for part in set(why.split("; ")))

    def row(self) -> dict[str, Any]:
        """The count as it is recorded."""
        kinds = {k: self.kinds[k] for k in KINDS}
        reasons = dict(self.refusals.most_common(REASONS))
        return {
            "seconds": round(self.seconds, 1), "graphs": self.graphs, "nodes": self.nodes, **kinds,
            "refusals": reasons,
        }  # fmt: skip


def simplify(reason: str, kind: str) -> str:
    """A refusal without the names and numbers of a model."""
    text = re.sub(r"'[^']*'", "…", " ".join(reason.split()))
    text = re.sub(r"\[[^]]*\]|\([^)]*\)", "…", text)
    text = re.sub(r"-?\d+(\.\d+)?(e-?\d+)?", "#", re.sub(r"(int|float|bfloat)\d+", r"\1#", text))
    return f"{'known: ' if kind == 'known' else ''}{text}"[:120]


def run_seeds(seeds: Iterable[int], directions: list[str], progress: Path, end: float) -> None:
    """Run programs until the time is up, and tell after each what came of it."""
    from .program import all_steps
    from .run import generate, send

    with open(progress, "a", encoding="utf-8") as log:
        for seed in seeds:
            if time.time() > end:
                return
            log.write(json.dumps({"begin": seed}) + "\n")
            log.flush()
            start = time.process_time()
            program = generate(seed)
            nodes = sum(1 for _ in all_steps(program.steps)) * len(program.data)
            for outcome in send(program, directions) if program.outputs else ():
                took, start = time.process_time() - start, time.process_time()
                line = asdict(outcome) | {"seed": seed, "nodes": nodes, "seconds": took}
                log.write(json.dumps(line) + "\n")
                if outcome.kind == "differs":
                    shown = f"{outcome.direction}: {outcome.output} {outcome.why[:250]!r}"
                    print(f"seed {seed}: {shown}", flush=True)
            log.write(json.dumps({"done": seed}) + "\n")


def supervise(first: int, seconds: float, directions: list[str]) -> dict[str, Count]:
    """Run programs from a seed on in child processes; one that ends a process is left out."""
    counts = {d: Count() for d in directions}
    end, seed = time.time() + seconds, first
    while time.time() < end:
        with tempfile.NamedTemporaryFile(prefix="serde-diff-", suffix=".log") as log:
            command = [sys.executable, "-W", "ignore", "-m", "conformance.differential", "--child",
                       log.name, "--first", str(seed), "--seconds", str(end - time.time()),
                       *(f"--direction={d}" for d in directions)]  # fmt: skip
            code = subprocess.call(command, cwd=ROOT, stderr=subprocess.DEVNULL)
            begun = collect(Path(log.name), counts)
        if code == 0:
            break
        print(f"seed {begun}: the process ended with {code}", flush=True)
        for count in counts.values():
            count.add("crashed", 0, "")
        seed = (seed if begun is None else begun) + 1
    return counts


def collect(log: Path, counts: dict[str, Count]) -> int | None:
    """Add what a child told; the seed it began last."""
    begun = None
    for line in log.read_text(encoding="utf-8").splitlines():
        told = json.loads(line)
        begun = told.get("begin", begun)
        if "direction" not in told:
            continue
        count = counts.setdefault(told["direction"], Count())
        count.seconds += told["seconds"]
        count.add(told["kind"], told["nodes"], told["why"])
    return begun


def add_to_record(counts: dict[str, Count]) -> None:
    """Add a run to what runs came to so far."""
    rows = record.rows(CELL)
    for direction, count in counts.items():
        if not count.graphs:
            continue
        before, row = rows.get(direction, {}), count.row()
        reasons = Counter(before.get("refusals", {})) + Counter(row.pop("refusals"))
        rows[direction] = {k: round(before.get(k, 0) + v, 1) for k, v in row.items()}
        rows[direction]["refusals"] = dict(sorted(reasons.most_common(REASONS)))
    record.write(CELL, rows)
