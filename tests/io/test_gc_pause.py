"""The collector is off while any thread pauses it, and afterwards as the user had it."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import onnx
import pytest

import serde
from serde.io import gc_pause
from serde.io.gc_pause import pause_collector, resume_collector


@pytest.fixture(params=[True, False], ids=["user has it on", "user has it off"])
def is_on(request):
    (gc.enable if request.param else gc.disable)()
    yield request.param
    gc.enable()


def test_a_pause_ends_with_its_outermost_block(is_on):
    with pause_collector():
        with pause_collector():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled() is is_on


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_a_pause_is_resumed_to_what_the_user_set(is_on, depth):
    with ExitStack() as stack:
        for _ in range(depth):
            stack.enter_context(pause_collector())
        with resume_collector():
            assert gc.isenabled() is is_on
            with pause_collector():
                assert not gc.isenabled()
            assert gc.isenabled() is is_on
        assert gc.isenabled() is (is_on and not depth)
    assert gc.isenabled() is is_on


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_ends_the_pause(is_on, kind):
    with pytest.raises(kind), pause_collector(), resume_collector(), pause_collector():
        raise kind
    assert gc.isenabled() is is_on


def test_a_thread_that_ends_leaves_the_pauses_of_others(is_on):
    begun, may_end = threading.Event(), threading.Event()

    def pause():
        with pause_collector():
            begun.set()
            may_end.wait(10)

    thread = threading.Thread(target=pause)
    thread.start()
    begun.wait(10)
    with pause_collector(), resume_collector():
        assert not gc.isenabled()  # the other thread still pauses it
    assert not gc.isenabled()
    may_end.set()
    thread.join()
    assert gc.isenabled() is is_on


def test_threads_in_any_order_leave_the_collector_as_it_was(is_on):
    def work(seed):
        for turn in range(200):
            with pause_collector(), pause_collector():
                if (turn + seed) % 3 == 0:
                    with resume_collector():
                        pass

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert gc.isenabled() is is_on


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("own", [0, 1, 2])
def test_a_forked_process_does_not_wait_for_threads_that_it_lacks(is_on, own):
    begun, may_end = threading.Event(), threading.Event()

    def pause():
        with pause_collector():
            begun.set()
            may_end.wait(10)

    thread = threading.Thread(target=pause)
    thread.start()
    begun.wait(10)
    with ExitStack() as stack:
        for _ in range(own):
            stack.enter_context(pause_collector())
        child = os.fork()
        if child == 0:
            code = 1
            try:
                is_right = gc.isenabled() is (is_on and not own)
                stack.close()
                with pause_collector():
                    is_right &= not gc.isenabled()
                code = 0 if is_right and gc.isenabled() is is_on else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    may_end.set()
    thread.join()
    assert gc.isenabled() is is_on


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_leaves_off_what_the_user_turned_off():
    with pause_collector():
        pass
    gc.disable()
    try:
        child = os.fork()
        if child == 0:
            os._exit(int(gc.isenabled()))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        gc.enable()


# When Python lets a signal's handler run. Python 3.10 ends a generator whose call is watched so.
MOMENTS = {"c_return"} | ({"call"} if sys.version_info >= (3, 11) else set())


def interrupt(place):
    """Raise KeyboardInterrupt at the moment of a number, if there are so many."""
    count = itertools.count()

    def watch(frame, event, argument):
        is_own = frame.f_code.co_filename in (gc_pause.__file__, contextlib.__file__)
        if is_own and event in MOMENTS and next(count) == place:
            raise KeyboardInterrupt

    sys.setprofile(watch)


@pytest.mark.parametrize("use", ["block", "function", "resumed"])
def test_an_interrupt_at_any_moment_ends_the_pause(is_on, use):
    """In the function that pauses, and in what Python does before and behind a block."""

    @pause_collector()
    def work():
        if use == "resumed":
            with resume_collector():
                pass

    for place in itertools.count():
        outcome = "done"
        try:
            interrupt(place)
            if use == "block":
                with pause_collector():
                    pass
            else:
                work()
        except KeyboardInterrupt:
            outcome = "interrupted"
        finally:
            sys.setprofile(None)
        assert gc.isenabled() is is_on
        assert not gc_pause._pauses.blocks
        if outcome == "done":
            break
    assert place > 9


@pytest.mark.parametrize(
    "name", ["m.onnx", "m-symbol.json", "m.relay", "m.json", "m.py", "m.tflite"]
)
def test_a_conversion_leaves_nothing_for_the_collector(tmp_path, name):
    """What it holds, weights among it, is let go at once: no object leads to itself."""
    weight = onnx.numpy_helper.from_array(np.ones((4, 3, 1, 1), np.float32), "w")
    image = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 8, 8])
    result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    nodes = [onnx.helper.make_node("Conv", ["x", "w"], ["z"]),
             onnx.helper.make_node("Relu", ["z"], ["y"])]  # fmt: skip
    graph = onnx.helper.make_graph(nodes, "g", [image], [result], [weight])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "source.onnx")
    serde.convert(tmp_path / "source.onnx", tmp_path / name)  # what is imported leaves some
    gc.collect()
    gc.disable()
    counts = []
    try:
        for _ in range(3):  # threads of tests before, as that of HTTP, may leave some meanwhile
            serde.convert(tmp_path / "source.onnx", tmp_path / name)
            counts.append(gc.collect())
        assert min(counts) == 0
    finally:
        gc.enable()
