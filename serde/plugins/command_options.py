"""Options of what is done with models: comparing, partitioning and migrating them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from serde.plugins.options import LIMITS, VERIFICATION, Options, option


class VerifyOptions(Options):
    """How a result is compared with its source."""

    verify: bool | str | None = option(
        "Run source and result and compare their outputs.",
        "With `layers`, compare each layer that both have, and name the first that differs.",
        choices=("outputs", "layers"), alone="outputs", metavar="[layers]", group=VERIFICATION,
    )  # fmt: skip
    data: Any = option(
        "The inputs to verify with; random if left out.",
        "An array for each name. Implies `--verify`.",
        kind="file", metavar="NPZ", group=VERIFICATION,
    )  # fmt: skip
    expected: Any = option(
        "The source's outputs for them, if it cannot run.", "Implies `--verify`.",
        kind="file", metavar="NPZ", group=VERIFICATION,
    )  # fmt: skip


class ToleranceOptions(Options):
    """How far numbers may be from those of the source."""

    rtol: float | None = option(
        "What a number may differ by, as a share of it; with --atol.",
        "Numbers pass where they differ by no more than `atol + rtol * |expected|`, as in NumPy; "
        "the one left out is 0. Integers too. Verifying, 10 times that on inputs that are not "
        "normal, 200 times on zeros and equal numbers.",
        kind="number", group=VERIFICATION,
    )  # fmt: skip
    atol: float | None = option(
        "What a number may differ by, whatever it is.", kind="number", group=VERIFICATION
    )


class ImageOptions(Options):
    """Which inputs are images; the command spells each part of it as an option of its own."""

    images: Mapping[str, Any] | None = option(
        "How the pixels of images become the model's inputs, as code in the graph: mean, std, "
        "scale, layout, bgr, labels.",
        kind="images",
    )  # fmt: skip


class PartitionOptions(Options):
    """How a model is cut into the parts of a backend and the remainder."""

    min_nodes: int = option(
        "Leave connected pieces of fewer nodes in the remainder.",
        kind="integer", least=1, default=1,
    )  # fmt: skip
    min_flops: int = option(
        "Leave pieces of fewer floating-point operations in the remainder.",
        "A multiply-add is two.", kind="integer", least=0, default=0,
    )  # fmt: skip
    max_parts: int | None = option(
        "Keep so many parts for the backend, those with the most multiply-adds.",
        kind="integer", least=0,
    )  # fmt: skip
    control_flow: str = option(
        "Whether subgraphs of an If or a Loop that is not taken are partitioned.",
        choices=("whole", "inside"), default="whole",
    )  # fmt: skip


class MigrateOptions(Options):
    """How many models are converted."""

    jobs: int | None = option(
        "How many models at a time; one for each processor if left out.",
        "More than one need joblib, `pip install joblib`; without it, one if left "
        "out.", kind="integer", least=1,
    )  # fmt: skip
    dask: str | None = option(
        "Run on this Dask scheduler; `local` for a cluster of this machine's own.",
        "It needs Dask: `pip install distributed`. Its workers need serde, and the files "
        "under the same paths, or URLs.", metavar="ADDRESS",
    )  # fmt: skip
    max_seconds: int = option(
        "The time each model may take.", kind="integer", least=1, default=600, group=LIMITS
    )
    max_memory: int = option(
        "The memory each model may take (Linux).",
        kind="integer", least=1, default=8192, metavar="MIB", group=LIMITS,
    )  # fmt: skip
    reports: bool | None = option("Write a report beside each result.", kind="flag")
    again: bool | None = option("Convert models, too, that were done before.", kind="flag")
    config: Any = option(
        "Options of some models, by patterns of their paths: TOML, JSON or YAML.",
        "They apply over those of the command. YAML needs PyYAML. See "
        "[migrate-many-models.md](../how-to/migrate-many-models.md).",
        kind="file",
    )  # fmt: skip
