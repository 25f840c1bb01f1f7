"""Run programs seed after seed, in a process that a runtime's crash costs one program only."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .program import Program

CELL = "differential"
GENERATING = "the source"  # where no direction is taken yet
KINDS = ("right", "unstable", "refused", "not run", "known", "crashed", "differs")
ROOT = Path(__file__).resolve().parents[2]
REASONS = 25  # that are kept of a direction
TURN = 300.0  # seconds after which a process is followed by another, and its counts are kept


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

    def join(self, other: Count) -> None:
        """Add what another came to."""
        self.seconds += other.seconds
        self.graphs += other.graphs
        self.nodes += other.nodes
        self.kinds += other.kinds
        self.refusals += other.refusals

    def row(self) -> dict[str, Any]:
        """The count as it is recorded."""
        kinds = {k: self.kinds[k] for k in KINDS}
        reasons = dict(self.refusals.most_common(REASONS))
        return {
            "seconds": round(self.seconds, 1), "graphs": self.graphs, "nodes": self.nodes, **kinds,
            "refusals": reasons,
        }  # fmt: skip


@dataclass
class Run:
    """What came of the programs of successive seeds, in some directions."""

    directions: list[str]
    first: int
    last: int
    programs: int = 0
    counts: dict[str, Count] = field(default_factory=dict)
    model: str = ""  # the hash of the last program's
    differences: dict[str, dict[str, str]] = field(default_factory=dict)  # by seed and direction

    def add(self, direction: str, entry: dict[str, Any]) -> None:
        """Count what became of a program in a direction."""
        count = self.counts.setdefault(direction, Count())
        count.seconds += entry["seconds"]
        count.add(entry["kind"], entry["nodes"], entry["why"])
        if entry["kind"] in ("differs", "crashed"):
            difference = {"why": entry["why"][:200], "model": self.model}
            self.differences[f"{entry['seed']} {direction}"] = difference


def simplify(reason: str, kind: str) -> str:
    """A refusal without the names and numbers of a model."""
    text = re.sub(r"'[^']*'", "…", " ".join(reason.split()))
    text = re.sub(r"\[[^]]*\]|\([^)]*\)", "…", text)
    text = re.sub(r"-?\d+(\.\d+)?(e-?\d+)?", "#", re.sub(r"(int|float|bfloat)\d+", r"\1#", text))
    return f"{'known: ' if kind == 'known' else ''}{text}"[:120]


def hash_model(program: Program) -> str:
    """What tells whether a seed still gives the same model."""
    from .program import make_model

    return sha256(make_model(program).SerializeToString()).hexdigest()[:16]


def run_seeds(seeds: Iterable[int], directions: list[str], progress: Path, end: float) -> None:
    """Run programs until the time is up, and tell what is begun and what came of it."""
    from .program import all_steps
    from .run import generate, send

    with open(progress, "a", encoding="utf-8", buffering=1) as log:

        def tell(**line: Any) -> None:
            log.write(json.dumps(line) + "\n")

        for seed in seeds:
            if time.time() > end:
                return
            tell(begin=seed)
            start = time.process_time()
            program = generate(seed, directions)
            nodes = sum(1 for _ in all_steps(program.steps)) * len(program.data)
            if not program.outputs:
                continue
            tell(program=seed, model=hash_model(program))
            for outcome in send(program, directions, lambda direction: tell(at=direction)):
                took, start = time.process_time() - start, time.process_time()
                tell(**asdict(outcome), seed=seed, nodes=nodes, seconds=took)
                if outcome.kind == "differs":
                    shown = f"{outcome.direction}: {outcome.output} {outcome.why[:250]!r}"
                    print(f"seed {seed}: {shown}", flush=True)


def supervise(first: int, seconds: float, directions: list[str]) -> Iterator[Run]:
    """Run programs from a seed on in child processes; one that ends a process is left out."""
    end, seed = time.time() + seconds, first
    while (left := end - time.time()) > 0:
        run = run_child(seed, min(left, TURN), directions)
        yield run
        if run.last < seed:
            return
        seed = run.last + 1


def run_child(seed: int, seconds: float, directions: list[str], most: int = 10**9) -> Run:
    """Run at most so many programs from a seed on in a process."""
    run = Run(directions, seed, seed - 1)
    with tempfile.NamedTemporaryFile(prefix="serde-diff-", suffix=".log") as log:
        command = [sys.executable, "-W", "ignore", "-m", "conformance.differential", "--child",
                   log.name, "--first", str(seed), "--most", str(most), "--seconds", str(seconds),
                   *(f"--direction={d}" for d in directions)]  # fmt: skip
        code = subprocess.call(command, cwd=ROOT, stderr=subprocess.DEVNULL)
        place = collect(Path(log.name), run)
    if code:
        print(f"seed {run.last}: the process ended with {code}, {place}", flush=True)
        entry = {"seed": run.last, "kind": "crashed", "why": f"the process ended with {code}"}
        run.add(place, entry | {"nodes": 0, "seconds": 0.0})
    return run


def collect(log: Path, run: Run) -> str:
    """Add what a child told; the direction that it went last, or where it was before any."""
    place = GENERATING
    for line in log.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if "begin" in entry:
            run.last, place, run.model = entry["begin"], GENERATING, ""
        elif "program" in entry:
            run.programs += 1
            run.model = entry["model"]
        elif "at" in entry:
            place = entry["at"]
        else:
            run.add(entry["direction"], entry)
    return place
