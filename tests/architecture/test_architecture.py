"""What keeps the code in shape: who imports whom, what an import costs, and how files read."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from serde.formats.mxnet import target as mxnet_target
from serde.formats.relay import target as relay_target
from serde.plugins import format_names, get_format
from serde.plugins.targets import consumer_names
from serde.version_converter.adapters import downgrades, upgrades

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "serde": "serde", "backends": "serde.backends", "formats": "serde.formats",
    "frontends": "serde.frontends",
    "bridges": "serde.bridges",
}  # fmt: skip
PLUGINS = {  # formats of somebody else's, which are held to the same
    "tests/plugin/toy/serde_toy": "serde_toy", "tests/plugin/slate/serde_slate": "serde_slate",
}  # fmt: skip
FRAMEWORKS = {"mxnet", "tvm", "onnxruntime", "torch", "tensorflow", "bitblas", "relax"}
MOST_LINES = 420  # "about 400"
# Who may ask onnx.defs, and what for. All others ask serde.spec.schema.
ASKS_DEFS = {
    "serde/spec/schema.py": "what the standard says of an operator, for everybody",
    "formats/onnx/repair.py": "which opset fits a file that names none",
}
# Who may use onnx at all within the hub.
USES_ONNX = {
    "serde/spec/schema.py": "the operators' declarations",
    "serde/spec/inference.py": "types and constants as messages of onnx",
    "serde/spec/onnx_library.py": "all calls of onnx's C++ code",
    "serde/spec/folding.py": "the value of one node",
    "serde/version_converter/adapters/function_bodies.py": "functions the standard defines operators by",
}
EXEMPT = (
    "backends/legalizations.py",
    "formats/mxnet/ops/",
    "formats/onnx/consumers/relax/",
    "formats/onnx/contrib/",
    "formats/pt2/ops/",
    "formats/relay/ops/",
    "formats/torch/ops/",
    "formats/tflite/ops/",
    "formats/tflite/read/",
    "serde/decompositions/",
    "serde/legalize/scalarize_sequences.py",
    "serde/version_converter/adapters/",
    "tests/plugin/toy/serde_toy/ops.py",
    "tests/plugin/slate/serde_slate/ops.py",
)  # rules speak for themselves


def sources() -> list[str]:
    return sorted(
        str(p.relative_to(ROOT))
        for folder in (*PACKAGES, *PLUGINS)
        for p in (ROOT / folder).rglob("*.py")
    )


@cache
def tree(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text())


@cache
def nodes(path: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree(path)))


def folder_of(path: str) -> str:
    """The folder of a package that a file lies in."""
    return next(f for f in (*PACKAGES, *PLUGINS) if path.startswith(f"{f}/"))


def module_of(path: str) -> str:
    """The name a file is imported by."""
    folder = folder_of(path)
    package = {**PACKAGES, **PLUGINS}[folder]
    parts = [package, *Path(path).relative_to(folder).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(p): p for p in sources()}


def imports_of(path: str, statement: ast.stmt) -> Iterator[str]:
    """The modules a statement imports, in full."""
    if isinstance(statement, ast.Import):
        yield from (a.name for a in statement.names)
    elif isinstance(statement, ast.ImportFrom):
        base = statement.module or ""
        if statement.level:
            package = module_of(path) if path.endswith("__init__.py") else (
                module_of(path).rpartition(".")[0]
            )  # fmt: skip
            above = package.split(".")[: len(package.split(".")) - statement.level + 1]
            base = ".".join([*above, base]) if base else ".".join(above)
        inside = [f"{base}.{a.name}" for a in statement.names]
        yield from (n if n in MODULES else base for n in inside)


def for_types_only(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test)


def at_import(path: str) -> set[str]:
    """What is imported with the module itself."""
    return {m for s in tree(path).body if not for_types_only(s) for m in imports_of(path, s)}


@cache
def anywhere(path: str) -> frozenset[str]:
    """What the module imports at any time."""
    return frozenset(m for s in nodes(path) if isinstance(s, ast.stmt) for m in imports_of(path, s))


def layer(module: str) -> int:
    """0 the hub and its backends, 1 the formats, 2 the front ends, 3 the bridges."""
    parts = module.split(".")
    if parts[0] in PLUGINS.values():
        return 1
    return {"formats": 1, "frontends": 2, "bridges": 3}.get(parts[1] if len(parts) > 1 else "", 0)


def format_of(module: str) -> str:
    """The package of a format that a module is of."""
    parts = module.split(".")
    return parts[0] if parts[0] in PLUGINS.values() else ".".join(parts[:3])


def offenders(find: Callable[[str], Any], paths: Iterable[str] | None = None) -> dict[str, Any]:
    """What is found wrong, by file."""
    return {p: faults for p in (sources() if paths is None else paths) if (faults := find(p))}


@cache
def calls(path: str) -> frozenset[str]:
    """Everything a file calls, as it is written."""
    return frozenset(ast.unparse(n.func) for n in nodes(path) if isinstance(n, ast.Call))


def roots(modules: Iterable[str]) -> set[str]:
    return {m.partition(".")[0] for m in modules}


def test_imports_point_from_bridges_to_formats_to_the_hub():
    def upwards(path):
        own = layer(module_of(path))
        return [m for m in anywhere(path) if m.split(".")[0] == "serde" and layer(m) > own]

    assert offenders(upwards) == {}


def test_formats_do_not_know_each_other():
    def others(path):
        known = ("serde.formats", format_of(module_of(path)))
        return [m for m in anywhere(path) if layer(m) == 1 and format_of(m) not in known]

    assert offenders(others, [p for p in sources() if layer(module_of(p)) == 1]) == {}


DOCUMENTED = ("how-to/add-a-format.md", "how-to/add-a-target.md", "how-to/add-an-operator.md",
              "reference/python.md", "reference/ir.md")  # fmt: skip


def test_plugins_use_what_is_documented():
    text = "".join((ROOT / "docs" / page).read_text() for page in DOCUMENTED)

    def hidden(path):
        return [m for m in anywhere(path) if m.startswith("serde.") and m not in text]

    assert offenders(hidden, [p for p in sources() if folder_of(p) in PLUGINS]) == {}


# Where the hub names a format, and what for. Others it is told of by those that are installed.
NAMES_FORMATS = {
    "serde/plugins/__init__.py": "the format of the IR's own operators",
    "serde/plugins/options.py": "the word onnx of --random",
    "serde/decompositions/random_source.py": "the same",
    "serde/io/provenance.py": "the package onnx, which every conversion may use",
    "serde/api/live_objects.py": "the facade that MXNet announced",
}


def test_the_hub_names_no_format_and_no_consumer():
    names = {*format_names(), *consumer_names()} - {"generic"}

    def named(path):
        constants = (n for n in nodes(path) if isinstance(n, ast.Constant))
        return {n.value for n in constants if isinstance(n.value, str) and n.value in names}

    hub = [p for p in sources() if layer(module_of(p)) == 0]
    assert offenders(named, hub).keys() == NAMES_FORMATS.keys()


def test_front_ends_use_the_hub_below_its_api():
    """They know no format: what is traced is a graph of the IR."""
    above = {"api", "cli"}

    def others(path):
        return [m for m in anywhere(path) if m.startswith("serde") and layer(m) != 2
                and (layer(m) or part(m) in above)]  # fmt: skip

    assert offenders(others, [p for p in sources() if p.startswith("frontends/")]) == {}


def test_a_folder_refers_to_itself_by_relative_imports():
    def absolute(path):
        own = {**PACKAGES, **PLUGINS}[folder_of(path)]
        return own != "serde" and [
            ast.unparse(s)
            for s in nodes(path)
            if isinstance(s, ast.ImportFrom) and not s.level and (s.module or "").startswith(own)
        ]

    assert offenders(absolute) == {}


def edges() -> set[tuple[str, str]]:
    """Who imports whom at any time: in functions and for types only as well."""
    return {
        (m, o) for m, path in MODULES.items() for o in anywhere(path) if o in MODULES and o != m
    }


def circles(pairs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """The imports that are part of a circle."""
    ahead: dict[str, set[str]] = {}
    for module, other in pairs:
        ahead.setdefault(module, set()).add(other)

    @cache
    def reach(start: str) -> frozenset[str]:
        modules: set[str] = set()
        waiting = [start]
        while waiting:
            for other in ahead.get(waiting.pop(), set()) - modules:
                modules.add(other)
                waiting.append(other)
        return frozenset(modules)

    return {(module, other) for module, other in pairs if module in reach(other)}


def test_no_module_is_imported_in_a_circle():
    """Imports in functions count."""
    assert circles(edges()) == set()


# The parts of the hub; each may import those before it, and none behind it.
ORDER = (
    "errors", "ir", "io", "spec", "rewrite", "decompositions", "version_converter", "passes",
    "legalize", "plugins", "pipeline", "verification", "backends",
    "api", "cli", "__main__",
)  # fmt: skip


def part(module: str) -> str:
    """The part of the hub that a module is in, empty for formats and bridges."""
    name = module.split(".")[1] if "." in module else ""
    return "" if layer(module) else name


def test_parts_of_the_hub_import_those_below():
    assert {part(m) for m in MODULES} == {"", *ORDER}
    pairs = {(part(m), part(o)) for m, o in edges() if part(m) and part(o)}
    place = {name: at for at, name in enumerate(ORDER)}
    assert {(a, b) for a, b in pairs if place[a] < place[b]} == set()


@pytest.mark.parametrize(("folder", "most"), [("serde", 17), ("formats/relay", 20)])
def test_folders_have_few_entries(folder, most):
    entries = [
        e for e in (ROOT / folder).iterdir()
        if e.name not in ("__pycache__", "__init__.pyi") and not e.is_symlink()
    ]  # fmt: skip
    assert len(entries) <= most, sorted(e.name for e in entries)


def test_no_package_gives_another_thing_the_name_of_its_submodule():
    """``import serde.formats.relay.from_ir`` has to give the module, and not a function."""
    hidden = []
    for module in MODULES:
        package, _, name = module.rpartition(".")
        if package in MODULES:
            submodule, parent = import_module(module), import_module(package)
            lazy = getattr(parent, "_PUBLIC", {})
            if getattr(parent, name) is not submodule or name in lazy:
                hidden.append(module)
    assert hidden == []


def run_python(code: str) -> list[str]:
    """The words a fresh interpreter prints."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()


def test_importing_serde_imports_no_other_module_of_ours_and_no_framework():
    names = run_python("import sys, serde; print(*sys.modules)")
    assert [name for name in names if name.startswith("serde")] == ["serde"]
    assert roots(names) & {*FRAMEWORKS, "numpy", "onnx", "google", "click", "rich"} == set()


# What a conversion from MXNet to ONNX does not need, and would wait for.
UNUSED = {
    "hashlib", "onnx.reference", "rich", "serde.formats.mxnet.from_ir",
    "serde.formats.onnx.contrib", "serde.formats.onnx.repair", "serde.formats.relay.to_ir",
    "serde.verification", "serde.bridges", "serde.cli.migrate", "serde.cli.partition_commands",
}  # fmt: skip


def test_a_conversion_imports_what_it_needs(tmp_path):
    target = tmp_path / "digits.onnx"
    arguments = ["convert", str(ROOT / "examples" / "digits"), "-o", str(target), "-q"]
    code = (
        "import sys; from serde.cli.commands import main;"
        f"main({arguments!r}, standalone_mode=False); print(*sys.modules)"
    )
    assert set(run_python(code)) & UNUSED == set() and target.exists()


def test_the_command_imports_what_it_is_asked_for():
    code = "from serde.cli.commands import main; main(['--version'], standalone_mode=False)"
    *_, shown = run_python(f"{code}; import sys; print(sys.modules.keys() & {{'numpy', 'onnx'}})")
    assert shown == "set()"


def test_formats_and_the_command_line_import_no_framework():
    code = "import sys, serde.cli.commands, serde.formats.mxnet, serde.formats.onnx; print(*sys.modules)"
    assert roots(run_python(code)) & FRAMEWORKS == set()


def test_frameworks_are_imported_in_functions_of_bridges_only():
    assert offenders(lambda p: roots(at_import(p)) & FRAMEWORKS) == {}
    elsewhere = [p for p in sources() if not p.startswith("bridges/")]
    assert offenders(lambda p: roots(anywhere(p)) & FRAMEWORKS, elsewhere) == {}


def test_the_hub_uses_onnx_in_few_places():
    hub = [p for p in sources() if p.startswith("serde/")]
    assert set(offenders(lambda p: "onnx" in roots(anywhere(p)), hub)) == set(USES_ONNX)


# What of onnx is C++ code that a node reaches; onnx.defs only looks names up.
NATIVE = {"checker", "compose", "inliner", "onnx_cpp2py_export", "parser", "shape_inference",
          "version_converter", "infer_node_outputs", "check_model", "infer_shapes",
          "get_function_with_opset_version", "get_context_dependent_function_with_opset_version",
          }  # fmt: skip


def test_one_file_calls_onnx_code_in_cpp():
    """It looks at a node before: such code ends the process at what it does not expect."""

    def names(path):
        if "onnx" not in roots(anywhere(path)) and "defs" not in (ROOT / path).read_text():
            return set()
        read = {n.attr for n in nodes(path) if isinstance(n, ast.Attribute)}
        froms = [n for n in nodes(path) if isinstance(n, (ast.ImportFrom, ast.Import))]
        imported = {part for n in froms for a in n.names for part in a.name.split(".")}
        modules = {part for n in froms if isinstance(n, ast.ImportFrom) and not n.level
                   for part in (n.module or "").split(".") if (n.module or "").startswith("onnx.")}  # fmt: skip
        return (read | imported | modules) & NATIVE

    assert list(offenders(names)) == ["serde/spec/onnx_library.py"]


def test_onnx_defs_has_few_users():
    def asks(path):
        return any(m.startswith("onnx.defs") for m in anywhere(path)) or any(
            (isinstance(n, ast.ImportFrom) and n.module == "onnx"
            and any(a.name == "defs" for a in n.names))
            or (isinstance(n, ast.Attribute) and n.attr == "defs")
            for n in nodes(path)
        )  # fmt: skip

    assert set(offenders(asks)) == set(ASKS_DEFS)


@pytest.mark.parametrize(
    "folder", ["formats/mxnet/ops", "formats/relay/ops", "serde/version_converter/adapters"]
)
def test_every_file_of_a_family_is_imported(folder):
    """A file that is not would leave its rules out of the tables without a word."""
    package = module_of(f"{folder}/__init__.py")
    import_module("serde.legalize.routes" if folder.endswith("adapters") else package)
    paths = [str(p.relative_to(ROOT)) for p in (ROOT / folder).rglob("*.py")]
    filling = {module_of(p) for p in paths if registers(p)}
    assert filling and filling <= sys.modules.keys()


FAMILIES = {  # operators that many files could hold, and the one name of theirs in every folder
    "BatchNormalization": "normalization",
    "Conv": "convolution",
    "LSTM": "recurrent",
    "MaxPool": "pooling",
    "Pad": "padding",
    "Softmax": "softmax",
}


@pytest.mark.parametrize("op", FAMILIES)
def test_an_operator_is_in_the_file_of_its_family(op):
    """Its rules in all tables; what the tables share is in ``serde.decompositions``."""
    import_module("serde.legalize.routes")  # fills the tables
    tables = [t for name in ("mxnet", "relay") for t in get_format(name).rule_tables()]
    tables += [mxnet_target.legalizations, relay_target.legalizations]
    # Opset 6 dropped the attribute ``consumed_inputs`` of many operators, by one rule.
    tables += [t for v, t in (*downgrades.items(), *upgrades.items()) if v > 6]
    modules = set()
    for rule in (t.rules[op] for t in tables if op in t.rules):
        function = rule.function
        while isinstance(function, partial):
            function = function.func
        modules.add(function.__module__)
    own = {m for m in modules if not m.startswith("serde.decompositions.")}
    assert own and {m for m in own if FAMILIES[op] not in m.split(".")} == set()


def registers(path: str) -> bool:
    """Whether a file fills a rule table as it is imported."""
    tables = {"reads", "writes", "legalizations", "downgrades", "upgrades", "decomposition"}
    called = [n.func for n in nodes(path) if isinstance(n, ast.Call)]
    return any({n.id for n in ast.walk(c) if isinstance(n, ast.Name)} & tables for c in called)


def test_files_are_short_enough_to_read():
    lengths = {p: len((ROOT / p).read_text().splitlines()) for p in sources()}
    assert {p for p, n in lengths.items() if n > MOST_LINES} == set()


def public(path: str) -> Iterator[tuple[str, ast.AST]]:
    """Public functions and classes; in the hub also the public methods of public classes."""
    for node in tree(path).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            yield node.name, node
            if isinstance(node, ast.ClassDef) and path.startswith("serde/"):
                methods = [m for m in node.body if isinstance(m, ast.FunctionDef)]
                yield from ((f"{node.name}.{m.name}", m) for m in methods if m.name[0] != "_")


def test_what_is_public_says_what_it_is():
    def mute(path):
        return [n for n, node in public(path) if not ast.get_docstring(node) and n not in OVERRIDES]

    assert offenders(mute, [p for p in sources() if not p.startswith(EXEMPT)]) == {}


OVERRIDES = {"Command.invoke"}  # methods a base class documents


def test_every_file_says_what_it_is_for():
    assert (
        offenders(lambda p: (ROOT / p).read_text().strip() and not ast.get_docstring(tree(p))) == {}
    )


def test_nothing_prints_or_logs():
    """One file of the command line speaks, and escapes what it says; ``export_model`` prints JSON."""
    speaking = {"print", "warnings.warn", "click.echo", "click.style", "click.secho",
                "sys.stdout.write", "sys.stderr.write", "traceback.print_exc"}  # fmt: skip
    files = set(offenders(lambda p: calls(p) & speaking or {"logging"} & anywhere(p)))
    assert files == {
        "serde/cli/printing.py", "bridges/mxnet_export.py",
    }  # fmt: skip


def test_markup_is_escaped_by_one_function():
    def imports_html(path):
        return {"html"} & anywhere(path)

    assert list(offenders(imports_html)) == ["serde/ir/markup.py"]


# Who opens files in another way than serde.io.sniff.open_regular, and which files these are.
OPENS = {
    "bridges/array_worker.py": "of the package, and of a temporary folder of its own",
    "bridges/onnxruntime_worker.py": "of a temporary folder of its parent",
    "bridges/worker_loop.py": "of a temporary folder of its parent",
    "formats/onnx/external_data_paths.py": "beneath a folder; it looks at what it has opened",
    "serde/api/bench/child.py": "what Linux tells of the process itself",
    "serde/api/migrate/journal.py": "the journal, to append to it, once it is known to be a file",
    "serde/api/migrate/child.py": "of a temporary folder of its parent",
    "serde/api/migrate/job.py": "of a temporary folder of its own",
    "serde/api/report/page.py": "of the package",
    "serde/cli/commands.py": "the null device, for a stream that is closed",
    "serde/cli/reference.py": "a page of the documentation",
    "serde/io/atomic_write.py": "a folder, to lock it",
    "serde/io/memory.py": "what Linux tells of memory",
    "serde/io/open_folder.py": "a folder, and new files in it",
    "serde/io/sniff.py": "any, without waiting",
}
READS = {
    "open",
    "io.open",
    "os.open",
    "os.fdopen",
    "np.load",
    "np.fromfile",
    "np.memmap",
    "np.loadtxt",
}


def opens_a_file(call: ast.Call) -> bool:
    """Whether a call opens a file by its path, to read it: a pipe would have to be waited for."""
    name, arguments = ast.unparse(call.func), [ast.unparse(a) for a in call.args]
    receiver, _, method = name.rpartition(".")
    if method in ("read_text", "read_bytes"):
        return receiver not in ("", "self")
    if method == "open" and receiver not in ("os", "io", ""):
        return not (call.args or call.keywords) or arguments[:1] in (["'r'"], ["'rb'"])
    if name in ("zipfile.ZipFile", "ZipFile", "tarfile.open", "gzip.open"):
        return "path" in arguments
    return name in READS


def test_one_function_opens_files_to_read_them():
    """It refuses pipes and devices, which may never end."""

    def opens(path):
        return [n for n in nodes(path) if isinstance(n, ast.Call) and opens_a_file(n)]

    assert sorted(offenders(opens)) == sorted(OPENS)


UNSAFE = {"eval", "exec", "compile", "__import__"}


def test_no_file_of_a_model_can_name_code():
    assert offenders(lambda p: calls(p) & UNSAFE) == {}
    assert offenders(lambda p: roots(anywhere(p)) & {"pickle", "marshal", "shelve", "dill"}) == {}
    loads = [n for p in sources() for n in nodes(p)
             if isinstance(n, ast.Call) and ast.unparse(n.func).endswith("np.load")]  # fmt: skip
    assert all("allow_pickle=False" in ast.unparse(n) for n in loads)


# Folders of rules, whose constants are made of counts that files claim.
RULES = ("formats/mxnet/ops/", "formats/relay/ops/", "formats/onnx/contrib/",
         "serde/decompositions/", "serde/version_converter/adapters/")  # fmt: skip
COUNTING = {f"np.{n}" for n in "arange eye full indices linspace ones zeros".split()}


def is_literal(expression: ast.expr) -> bool:
    """Whether only what is written down there counts."""
    inside = [*ast.walk(expression)]
    names = [n for n in inside if isinstance(n, (ast.Name, ast.Attribute, ast.Call))]
    is_constant = all(isinstance(n, ast.Name) and n.id.isupper() for n in names)
    return is_constant or any(isinstance(n, ast.Constant) and n.value == 0 for n in inside)


def test_rules_charge_the_arrays_that_they_make():
    """They use ``serde.ir.arrays``, or charge before several of NumPy's in one function."""

    def find_uncharged(path):
        functions = [n for n in nodes(path) if isinstance(n, ast.FunctionDef)]
        return [
            f"{function.name}: {ast.unparse(n)}"
            for function in functions
            if "arrays.charge_elements" not in ast.unparse(function)
            for n in ast.walk(function)
            if isinstance(n, ast.Call) and ast.unparse(n.func) in COUNTING
            and n.args and not is_literal(n.args[0])
        ]  # fmt: skip

    assert offenders(find_uncharged, [p for p in sources() if p.startswith(RULES)]) == {}


def test_nothing_talks_to_the_network():
    network = {"socket", "urllib", "http", "requests", "ftplib", "smtplib", "asyncio"}
    assert offenders(lambda p: roots(anywhere(p)) & network) == {}
