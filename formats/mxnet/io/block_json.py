"""``NAME-model.json`` of Gluon's ``HybridBlock.save``: blocks in blocks, and the hybridized symbol.

Each block is an object: ``orig_name``, the prefix of its parameters; ``children``, which maps those
of its children to the attributes they are; the children themselves under other keys; and where it
was hybridized, ``symbol``, which is symbol JSON as a text. ``NAME-model.params`` beside it is
written by ``save_parameters``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from serde.errors import MalformedFile

from .params import Params

DEEPEST = 64  # blocks in blocks


class Block(NamedTuple):
    """The text of the symbol, and the prefix of the parameters of each block, by attributes."""

    symbol: bytes
    prefixes: Mapping[str, str]


def parse_block(text: bytes, path: str) -> Block:
    """Read what ``HybridBlock.save`` wrote; ``path`` is what errors call it.

    Raises:
        MalformedFile: for anything else, and for a block that was not hybridized.
    """
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedFile(path, f"not what HybridBlock.save writes: {str(error)[:200]}") from None
    blocks = [b for b in raw.values() if isinstance(b, dict)] if isinstance(raw, dict) else []
    if len(blocks) != 1 or "orig_name" not in blocks[0]:
        raise MalformedFile(path, "not what HybridBlock.save writes: it has no single block")
    symbol = blocks[0].get("symbol")
    if not isinstance(symbol, str):
        raise MalformedFile(
            path, "the block was saved without a symbol, as it had not been hybridized: call "
            "hybridize() and run it once before save(), or export() it"
        )  # fmt: skip
    return Block(symbol.encode(), dict(_find_prefixes(blocks[0], "", DEEPEST)))


def _find_prefixes(block: Mapping[str, Any], path: str, depth: int) -> Iterator[tuple[str, str]]:
    name = block.get("orig_name")
    if not isinstance(name, str) or depth == 0:
        return
    yield path, f"{name}_" if name else ""
    attributes = block.get("children")
    for child in block.values():
        if isinstance(child, dict) and isinstance(attributes, dict):
            attribute = attributes.get(child.get("orig_name"))
            if isinstance(attribute, str):
                yield from _find_prefixes(child, f"{path}{attribute}.", depth - 1)


def name_parameters(params: Params, block: Block) -> Params:
    """The arrays under the names of the symbol's variables, as far as blocks tell."""
    names = []
    for name in params.plain_names:
        path, dot, last = name.rpartition(".")
        prefix = block.prefixes.get(path + dot)
        names.append(name if prefix is None else prefix + last)
    is_clear = len(set(names)) == len(names)
    return params._replace(names=tuple(names)) if is_clear else params
