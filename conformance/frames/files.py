"""Ways in which files hold a network."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from testing.mxnet.written import params_bytes

Array = np.ndarray[Any, Any]
Arrays = Mapping[str, Array]


class Saved(NamedTuple):
    """What is saved: the text of a symbol, the arrays of parameters, states and the last batch."""

    symbol: str
    parameters: Arrays
    states: Arrays
    fed: Arrays
    order: tuple[str, ...]  # of all variables


Way = Callable[[Saved, Path], None]


def write(folder: Path, symbol: str, arrays: Any, epoch: int = 0) -> None:
    """The files of a model: arrays by name, or a list."""
    (folder / "m-symbol.json").write_text(symbol)
    (folder / f"m-{epoch:04d}.params").write_bytes(params_bytes(arrays))


def prefix(arrays: Arrays, kind: str) -> dict[str, Array]:
    """Names as MXNet writes them: ``arg:`` or ``aux:`` in front."""
    return {f"{kind}:{n}": a for n, a in arrays.items()}


def name_arrays(net: Saved) -> dict[str, Array]:
    """Parameters and states under the names of a checkpoint."""
    return prefix(net.parameters, "arg") | prefix(net.states, "aux")


def save_checkpoint(net: Saved, folder: Path) -> None:
    write(folder, net.symbol, name_arrays(net))


def save_bare_names(net: Saved, folder: Path) -> None:
    write(folder, net.symbol, {**net.parameters, **net.states})


def save_states_as_arguments(net: Saved, folder: Path) -> None:
    write(folder, net.symbol, prefix({**net.parameters, **net.states}, "arg"))


def save_mixed_names(net: Saved, folder: Path) -> None:
    """Every second with its prefix."""
    arrays = enumerate(name_arrays(net).items())
    write(folder, net.symbol, {n if i % 2 else n.partition(":")[2]: a for i, (n, a) in arrays})


def save_whole(net: Saved, folder: Path) -> None:
    """All of an executor's arguments: ``arg_dict`` and ``aux_dict`` of a C++ front end."""
    arrays = {**net.parameters, **net.fed}
    ordered = {n: arrays[n] for n in net.order if n in arrays}
    write(folder, net.symbol, {**ordered, **net.states})


def save_whole_prefixed(net: Saved, folder: Path) -> None:
    write(
        folder, net.symbol, prefix({**net.fed, **net.parameters}, "arg") | prefix(net.states, "aux")
    )


def save_without_names(net: Saved, folder: Path) -> None:
    arrays = {**net.parameters, **net.states}
    write(folder, net.symbol, [arrays[n] for n in net.order if n in arrays])


def save_whole_without_names(net: Saved, folder: Path) -> None:
    arrays = {**net.parameters, **net.fed, **net.states}
    write(folder, net.symbol, [arrays[n] for n in net.order])


def save_later_epoch(net: Saved, folder: Path) -> None:
    """Beside parameters of another training, of an earlier epoch."""
    others = {n: a * 2 + 1 for n, a in {**net.parameters, **net.states}.items()}
    write(folder, net.symbol, prefix(others, "arg"))
    write(folder, net.symbol, name_arrays(net), 12)


def save_with_others(net: Saved, folder: Path) -> None:
    """With arrays of nothing, as of a head that was cut off."""
    others = {"arg:old_head_weight": np.ones((3, 77), "f"), "aux:old_moving_mean": np.ones(7, "f")}
    write(folder, net.symbol, name_arrays(net) | others)


def respell(net: Saved, key: str, version: int) -> str:
    """The symbol with attributes under another key, of another version."""
    raw = json.loads(net.symbol)
    for node in raw["nodes"]:
        attrs = node.pop("attrs", None)
        if attrs:
            node[key] = attrs
    raw["attrs"] = {"mxnet_version": ["int", version]}
    return json.dumps(raw)


def save_as_0_11(net: Saved, folder: Path) -> None:
    write(folder, respell(net, "attr", 1100), name_arrays(net))


def save_as_1_2(net: Saved, folder: Path) -> None:
    write(folder, respell(net, "attrs", 10200), name_arrays(net))


WAYS: dict[str, Way] = {
    "checkpoint": save_checkpoint,
    "bare names": save_bare_names,
    "states as arguments": save_states_as_arguments,
    "mixed names": save_mixed_names,
    "whole": save_whole,
    "whole, prefixed": save_whole_prefixed,
    "no names": save_without_names,
    "whole, no names": save_whole_without_names,
    "later epoch": save_later_epoch,
    "other arrays": save_with_others,
    "0.11": save_as_0_11,
    "1.2": save_as_1_2,
}
