"""Nothing that is of the whole process is changed: serde is a library, and runs in threads.

Calls that change such state are refused in all code. Those that are left name their reason.
"""

from __future__ import annotations

import ast

import pytest

from tests.architecture.test_architecture import nodes, offenders, sources

# Functions that change what all threads of a process share.
CHANGES = {
    "os.chdir", "os.fchdir", "os.umask", "os.putenv", "os.unsetenv", "os.setuid", "os.nice",
    "os.environ.update", "os.environ.pop", "os.environ.setdefault", "os.environ.clear", "os.dup2",
    "os.setpgrp", "os.setsid", "os.close_range", "os.sched_setaffinity",
    "contextlib.chdir", "contextlib.redirect_stdout", "contextlib.redirect_stderr", "chdir",
    "redirect_stdout", "redirect_stderr",
    "signal.signal", "signal.alarm", "signal.setitimer", "signal.pthread_sigmask",
    "signal.set_wakeup_fd", "faulthandler.enable", "atexit.register", "os.register_at_fork",
    "gc.disable", "gc.enable", "gc.freeze", "gc.set_threshold", "gc.collect",
    "locale.setlocale", "time.tzset", "decimal.setcontext", "codecs.register_error",
    "codecs.register",
    "warnings.catch_warnings", "warnings.simplefilter", "warnings.filterwarnings",
    "warnings.resetwarnings", "catch_warnings", "simplefilter", "filterwarnings",
    "logging.basicConfig", "logging.disable", "logging.config.dictConfig",
    "logging.captureWarnings",
    "np.seterr", "np.seterrcall", "np.setbufsize", "np.set_printoptions", "np.printoptions",
    "np.random.seed", "np.random.set_state", "random.seed", "random.setstate",
    "sys.setrecursionlimit", "sys.setswitchinterval", "sys.settrace", "sys.setprofile",
    "sys.set_int_max_str_digits", "sys.path.insert", "sys.path.append", "sys.path.remove",
    "sys.path.extend", "sys.meta_path.insert", "sys.meta_path.append", "sys.modules.update",
    "sys.modules.pop", "sys.stdout.reconfigure", "stream.reconfigure",
    "threading.stack_size", "threading.settrace", "threading.setprofile",
    "resource.setrlimit", "socket.setdefaulttimeout", "mimetypes.init",
    "multiprocessing.set_start_method", "mp.set_start_method", "tracemalloc.start",
    "setrlimit", "setrecursionlimit", "setlocale", "umask",
}  # fmt: skip
# Assignments to what all share, or to its members.
SHARED = ("os.environ", "sys.path", "sys.modules", "sys.stdout", "sys.stderr", "sys.stdin",
          "sys.argv", "sys.excepthook", "sys.meta_path", "sys.path_hooks", "sys.displayhook",
          "sys.unraisablehook",
          "tempfile.tempdir", "threading.excepthook", "warnings.filters", "warnings.showwarning",
          "socket.socket")  # fmt: skip
ALLOWED = {
    "serde/api/bench/child.py": ({"os.dup2"}, "the main function of a process of its own"),
    "bridges/worker_loop.py": (
        {"os.dup2", "signal.signal", "gc.freeze", "gc.collect"},
        "begins the program of a process of its own",
    ),
    "bridges/mxnet.py": (
        {"warnings.catch_warnings", "warnings.simplefilter", "sys.meta_path.insert",
         "sys.modules"},
        "once, as MXNet is imported: it uses names that NumPy warns of, and gets mxnet.serde",
    ),
    "bridges/mxnet_onnx.py": (
        {"sys.modules.update"}, "install(), which the user calls to have mxnet.onnx replaced",
    ),
    "bridges/torch_worker.py": (
        {"sys.modules"}, "the program of a process of its own, where the written module is entered",
    ),
    "bridges/numpy_compat.py": (
        {"warnings.catch_warnings", "warnings.simplefilter"}, "once, as MXNet is imported",
    ),
    "serde/cli/commands.py": (
        {"codecs.register_error", "stream.reconfigure"}, "the process is that of the command",
    ),
    "serde/cli/editing.py": (
        {"sys.path.insert", "redirect_stdout"},
        "the process is that of the command, which imports and runs the user's code",
    ),
    "serde/io/child_process.py": (
        {"resource.setrlimit"}, "limit_process, which child processes call of themselves",
    ),
    "serde/io/gc_pause.py": (
        {"gc.disable", "gc.enable", "os.register_at_fork"},
        "counted for all threads, and given back as it was, in forked processes too",
    ),
    "serde/io/signals.py": (
        {"signal.signal", "sys.unraisablehook"},
        "of the command, in its main thread; handlers of others stay",
    ),
}  # fmt: skip


def changes(path):
    """What a file changes of the process, as it is written."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Call) and (name := ast.unparse(node.func)) in CHANGES:
            found.add(name)
        targets = node.targets if isinstance(node, (ast.Assign, ast.Delete)) else (
            [node.target] if isinstance(node, (ast.AugAssign, ast.AnnAssign)) else []
        )  # fmt: skip
        for target in targets:
            while isinstance(target, ast.Subscript):
                target = target.value
            if (name := ast.unparse(target)) in SHARED:
                found.add(name)
        if isinstance(node, ast.Global):
            found.add("global")
    return found


def test_nothing_process_wide_is_changed():
    assert offenders(lambda p: changes(p) - ALLOWED.get(p, (set(),))[0]) == {}


def test_every_exception_is_still_needed():
    found = offenders(changes)
    assert {p: names for p, (names, _) in ALLOWED.items()} == {p: found.get(p) for p in ALLOWED}


def test_signals_and_the_import_path_are_of_the_command():
    """Modules of the command line are imported by no other part.

    Workers of a local Dask cluster are processes of serde as well.
    """
    users = [p for p in sources() if not p.startswith("serde/cli/")
             and any("serde.cli" in ast.unparse(n) for n in nodes(p)
                     if isinstance(n, (ast.Import, ast.ImportFrom)))]  # fmt: skip
    assert users in ([], ["serde/__main__.py"])
    assert [p for p in sources() if any(
        isinstance(n, ast.ImportFrom) and n.module == "serde.io.signals" for n in nodes(p)
    )] == ["serde/api/migrate/dask_worker.py", "serde/cli/commands.py"]  # fmt: skip


def unbounded(path):
    """Caches without a bound of functions that take arguments."""
    found = []
    for node in nodes(path):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            marks = [ast.unparse(d) for d in node.decorator_list]
            is_endless = {"cache", "functools.cache", "lru_cache(None)", "lru_cache(maxsize=None)"}
            if is_endless & set(marks) and (
                node.args.args or node.args.vararg or node.args.kwonlyargs
            ):
                found.append(node.name)
    return found


# Arguments that are of a few kinds, which no file and no caller adds to.
FEW = {
    "formats/mxnet/io/params.py": "kinds of numbers, and ranks",
    "formats/mxnet/legalize.py": "operators that releases lack",
    "formats/torch/legalize.py": "whether a module is exportable",
    "serde/cli/options.py": "formats that are installed",
    "serde/plugins/__init__.py": "what is installed",
    "serde/plugins/options.py": "classes of options",
    "serde/spec/schema.py": "opsets of the standard, and types in schemas",
}


def test_caches_are_bounded():
    assert set(offenders(unbounded)) <= FEW.keys()


@pytest.mark.parametrize("path", FEW)
def test_every_cache_without_bound_is_still_there(path):
    assert unbounded(path)
