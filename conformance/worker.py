"""A process that runs cases: a framework that crashes or hangs costs one case."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import pytest


class Runner(Protocol):
    """What runs cases by name."""

    def run(self, case: str) -> Any:
        """The result of one case."""


class Ended(Exception):
    """A case raised an error, ended its process, or took too long."""


def _work(make: Callable[[], Runner], environment: Mapping[str, str], pipe: Any) -> None:
    """Answer each case that is sent by whether it ran, and the result or the error."""
    os.environ.update(environment)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    runner = make()
    while True:
        try:
            case = pipe.recv()
        except EOFError:  # nobody asks any more
            return
        try:
            answer: tuple[bool | None, Any] = True, runner.run(case)
        except pytest.skip.Exception as error:  # a framework is not here
            answer = None, str(error)
        except Exception as error:  # whatever a framework raises
            answer = False, f"{type(error).__name__}: {error}"
        pipe.send(answer)


class Worker:
    """A process with what ``make`` returns, started with the first case and again after a crash.

    ``environment`` is set before ``make`` is called, and so before a framework is loaded.
    """

    def __init__(
        self, make: Callable[[], Runner], seconds: float, environment: Mapping[str, str] = {}
    ) -> None:
        self.make, self.seconds, self.environment = make, seconds, environment
        self.process: Any = None

    def run(self, case: str) -> Any:
        """The result of one case. Raises Ended; ends the run where its framework is not here."""
        if self.process is None:
            self._start()
        try:
            self.pipe.send(case)
            if self.pipe.poll(self.seconds):
                has_run, answer = self.pipe.recv()
                if has_run is None:
                    raise SystemExit(answer)
                if has_run:
                    return answer
                raise Ended(answer)
            why = f"no answer in {self.seconds:g} s"
        except (EOFError, ConnectionError):
            why = "the process crashed"
        self.end()
        raise Ended(why)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        arguments = self.make, self.environment, theirs
        self.process = context.Process(target=_work, args=arguments, daemon=True)
        self.process.start()
        theirs.close()

    def end(self) -> None:
        """End the process; the next case starts another."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None
