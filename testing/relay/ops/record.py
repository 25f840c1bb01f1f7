"""Have live TVM compute the cases: ``python testing/relay/ops/record.py FOLDER``, with TVM's Python.

Writes for each case a folder with ``module.json`` and ``io.npz``, as those of the corpus, unless it
is there, and packs all of them into ``recorded.zip.xz``. What TVM itself could not build is printed.
"""

from __future__ import annotations

import io
import lzma
import os
import sys
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[3]


def array(name: str, spec: str, at: int) -> np.ndarray:
    """A seeded array for ``shape[:dtype[:low:high]]``; ``halves`` are multiples of a quarter."""
    parts = spec.split(":")
    dims = parts[0] if parts[0] == "" or parts[0][0].isdigit() else None
    kind = (parts if dims is None else parts[1:]) or ["float32"]
    shape = () if dims is None else tuple(int(d) for d in dims.split(","))
    rng = np.random.default_rng(zlib.crc32(f"{name}/{at}".encode()))
    if kind[0] == "halves":
        return (np.arange(np.prod(shape)).reshape(shape) / 4 * 2 - 2.25 * 1).astype(
            np.float32
        ) + 0.25
    dtype = np.dtype(kind[0])
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    low, high = (float(k) for k in kind[1:]) if len(kind) > 1 else (-1.5, 1.5)
    if dtype.kind in "iu":
        return np.asarray(rng.integers(int(low), int(high) + 1, shape)).astype(dtype)
    return np.asarray(rng.uniform(low, high, shape)).astype(dtype)


def weights(*shape: int) -> np.ndarray:
    """Bytes of both signs."""
    return np.random.default_rng(7).integers(-128, 128, shape)


def arrays_for(name: str, inputs: Sequence[str]) -> dict[str, np.ndarray]:
    """What a case is fed, by the names its expression has for it."""
    return {letter: array(name, spec, at) for at, (letter, spec) in enumerate(
        zip(["a", "b", "c_", "d", "e"], inputs, strict=False))}  # fmt: skip


def name_sizes(arrays: dict[str, np.ndarray], naming: str) -> dict[str, list[int | None]]:
    """The shapes of inputs; None is a dynamic size.

    With ``batch`` it is the first of ``a``, and of whatever begins with as many; with ``any`` all
    sizes of ``a`` above 1.
    """
    shapes: dict[str, list[int | None]] = {n: list(v.shape) for n, v in arrays.items()}
    first = next(iter(shapes.values()), [])
    if naming == "batch" and first:
        for shape in [s for s in shapes.values() if s and s[0] == first[0] and s is not first]:
            shape[0] = None
        first[0] = None
    if naming == "any":
        first[:] = [None if d > 1 else d for d in first]
    return shapes


def build(expression: str, arrays: dict[str, np.ndarray], naming: str = "static"):
    """The module of a case."""
    import tvm
    from tvm import relay

    variables = {
        n: relay.var(n, shape=[relay.Any() if d is None else d for d in shape],
                     dtype=str(arrays[n].dtype))
        for n, shape in name_sizes(arrays, naming).items()
    }  # fmt: skip
    scope = {"R": relay, "c": lambda v, d="float32": relay.const(np.array(v, d), d), "w": weights}
    body = eval(expression, {**scope, **variables})  # the cases are this repository's own
    body = body.astuple() if isinstance(body, relay.expr.TupleWrapper) else body
    function = relay.Function(list(variables.values()), body)
    return relay.transform.InferType()(tvm.IRModule.from_expr(function))


def arrays_of(result) -> list[np.ndarray]:
    """The tensors of a result, depth first."""
    return (
        [result.numpy()] if hasattr(result, "numpy") else [a for f in result for a in arrays_of(f)]
    )


def run_tvm(module, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What TVM computes."""
    import tvm
    from tvm import relay

    executor = relay.create_executor("vm", mod=module, device=tvm.cpu(), target="llvm")
    return arrays_of(executor.evaluate()(*arrays.values()))


def folder_name(case: str) -> str:
    """What a case is called in the archive."""
    return case.replace("(", "").replace(")", "").replace(", ", "x")


def record(
    folder: Path, name: str, expression: str, inputs: Sequence[str], oracle: str = ""
) -> None:
    """Run a case and write it."""
    import tvm

    arrays = arrays_for(name, inputs)
    module = build(expression, arrays)
    outputs = run_tvm(build(oracle, arrays) if oracle else module, arrays)
    place = folder / folder_name(name)
    place.mkdir(parents=True, exist_ok=True)
    (place / "module.json").write_text(tvm.ir.save_json(module))
    held = {f"in:{n}": v for n, v in arrays.items()}
    np.savez(place / "io.npz", **held, **{f"out:{i}": v for i, v in enumerate(outputs)})


def live(
    name: str, expression: str, inputs: Sequence[str], oracle: str, file: str
) -> dict[str, str | None]:
    """Run a case; return its module with sizes that are known, and with those that are not.

    What went in and came out is written to ``file``. None stands for a module TVM finds no types
    for.
    """
    import tvm

    arrays = arrays_for(name, inputs)
    module = build(expression, arrays)
    outputs = run_tvm(build(oracle, arrays) if oracle else module, arrays)
    held = {f"in:{n}": v for n, v in arrays.items()}
    np.savez(file, **held, **{f"out:{i}": v for i, v in enumerate(outputs)})
    forms: dict[str, str | None] = {"static": tvm.ir.save_json(module)}
    for naming in ("batch", "any"):
        if name_sizes(arrays, naming) == name_sizes(arrays, "static"):
            continue
        try:
            forms[naming] = tvm.ir.save_json(build(expression, arrays, naming))
        except tvm.TVMError:
            forms[naming] = None
    return forms


def main(folder: Path) -> None:
    """Record every case."""
    import tvm

    sys.path.insert(0, str(ROOT))
    from testing.relay.ops.table import CASES

    for name, case in CASES.items():
        if (folder / folder_name(name)).exists():
            continue
        try:
            record(folder, name, case.expression, case.inputs, case.oracle)
        except tvm.TVMError as error:
            print(name, str(error).strip()[-300:])
    pack(folder, ROOT / "testing/relay/ops/recorded.zip.xz", {folder_name(name) for name in CASES})


def pack(folder: Path, target: Path, cases: set[str]) -> None:
    """Write what was recorded of ``cases`` into one archive, packed as a whole."""
    plain = io.BytesIO()
    with zipfile.ZipFile(plain, "w") as archive:
        for path in sorted(folder.glob("*/*")):
            if path.parent.name in cases and path.name in ("module.json", "io.npz"):
                entry = zipfile.ZipInfo(str(path.relative_to(folder)))
                archive.writestr(entry, path.read_bytes())
    target.write_bytes(lzma.compress(plain.getvalue(), preset=9))


if __name__ == "__main__":
    os.environ.setdefault("TVM_LOG_DEBUG", "")
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    main(target)
