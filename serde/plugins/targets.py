"""What results are written for: formats, and the consumers of their files (``--profile``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from serde.errors import UsageError
from serde.plugins import (
    Format,
    format_names,
    get_format,
    installed_formats,
    target_names,
    written_formats,
)
from serde.plugins.consumer import Consumer
from serde.plugins.options import Options, check_word, list_options, option


def consumer_names(format_name: str | None = None) -> list[str]:
    """The names of all consumers, or those of a format, which are those of profiles."""
    formats = installed_formats() if format_name is None else [get_format(format_name)]
    return [name for fmt in formats for name in fmt.consumers]


def list_profiles() -> dict[str, str]:
    """The names of consumers, by these and by what else they are called."""
    words = {name: name for name in consumer_names()}
    for fmt in installed_formats():
        for name in fmt.consumers.keys() - target_names():
            words.update(dict.fromkeys(fmt.consumers[name].also_called, name))
    return words


def get_consumer(name: str, format_name: str | None = None) -> Consumer:
    """The consumer of a name, of files of a format.

    Raises:
        UsageError: listing those there are, with the one that may be meant.
    """
    known = {} if format_name is None else get_format(format_name).consumers
    if name in known:
        return known[name]
    _refuse_replaced(name)
    check_word("--profile=", name, list_profiles())
    fmt = format_of_consumer(name)
    if format_name not in (None, fmt.name):
        raise UsageError(
            f"--profile={name} is for files of {fmt.title}: write one "
            f"({', '.join(f'-o NAME{suffix}' for suffix in fmt.suffixes)}), or leave it out"
        )
    return fmt.consumers[name]


def explain_replaced(name: str) -> str:
    """What to use in place of a profile that is no more; nothing for other names."""
    advices = (fmt.replaces[name] for fmt in installed_formats() if name in fmt.replaces)
    return next((f"{name!r} is no profile any more: {advice}" for advice in advices), "")


def _refuse_replaced(name: str) -> None:
    if reason := explain_replaced(name):
        raise UsageError(reason)


def format_of_consumer(name: str) -> Format:
    """The format that a consumer reads."""
    return next(fmt for fmt in installed_formats() if name in fmt.consumers)


def describe_next_step(name: str, path: str, options: Mapping[str, Any]) -> str:
    """How a file of a format is run, by the consumer that it was written for or another."""
    fmt = get_format(name)
    profile = options.get("profile")
    step: Any = fmt.consumers[profile].next_step if profile else ""
    if step is not None and not step:
        step = fmt.next_step
    suffix = next((s for s in fmt.suffixes if path.endswith(s)), "")
    text = step.get(suffix, "") if isinstance(step, Mapping) else step
    values = fmt.write_options(options)
    named = {n: getattr(values, n) for n in list_options(fmt.write_options)}
    return (text or "").format(**named, name=path, stem=path.removesuffix(suffix))


def list_targets() -> dict[str, str]:
    """The names of formats and of consumers, by these and by what else consumers are called."""
    formats = {name: name for name in written_formats()}
    return formats | {word: name for word, name in list_profiles().items() if word not in formats}


def find_target(name: str) -> tuple[Format, str | None]:
    """The format of a name; for that of a consumer, the format it reads, and the name.

    Raises:
        UsageError: for a name of neither, with the one that may be meant.
    """
    _refuse_replaced(name)
    check_word("--to=", name, list_targets())
    return (get_format(name), None) if name in format_names() else (format_of_consumer(name), name)


class ProfileOptions(Options):
    """For formats whose files are written for consumers."""

    profile: str | None = option(
        "What the file is written for: a runtime, a compiler or a device.",
        "[targets.md](targets.md) lists them. `relax` is described below; "
        "[consumers.md](../how-to/consumers.md), [write-tflite.md](../how-to/write-tflite.md) and "
        "[add-a-target.md](../how-to/add-a-target.md) are about others.",
        metavar="NAME", choices=list_profiles,
    )  # fmt: skip
