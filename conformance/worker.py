"""A process that runs cases of one cell: a framework that crashes or hangs costs one case."""

from __future__ import annotations

import multiprocessing
import warnings
from typing import Any

import numpy as np

from .matrix import outcomes, source_of, target_of
from .record import WRONG, Outcome

SECONDS = 240  # for one case, at all variants of the target


def _work(cell: str, pipe: Any) -> None:
    """Answer each case that is asked for by its outcomes."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    source, target = source_of(cell), target_of(cell)
    while True:
        try:
            case = pipe.recv()
        except EOFError:  # nobody asks any more
            return
        found = outcomes(source, target, case)
        pipe.send({variant: tuple(outcome) for variant, outcome in found.items()})


class Worker:
    """The process of one cell, started when it is first asked and again after a crash."""

    def __init__(self, cell: str) -> None:
        self.cell, self.variants = cell, target_of(cell).variants
        self.process: Any = None

    def outcomes(self, case: str) -> dict[str, Outcome]:
        """What becomes of one case at each variant."""
        if self.process is None:
            self._start()
        try:
            self.pipe.send(case)
            if self.pipe.poll(SECONDS):
                return {v: Outcome(*o) for v, o in self.pipe.recv().items()}
            why = f"no answer in {SECONDS} s"
        except (EOFError, ConnectionError):
            why = "the process crashed"
        self._end()
        return dict.fromkeys(self.variants, Outcome(WRONG, why))

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(self.cell, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def _end(self) -> None:
        self.process.kill()
        self.process.join()
        self.process = None
