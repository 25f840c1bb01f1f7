"""Files that once ended in something else than success or a SerdeError.

``tests/data/regressions`` holds them, as ``<reader>--<what they did>``.
"""

from pathlib import Path

import pytest

from testing.cpu_limit import limit_cpu
from testing.fuzz import attempts

FILES = sorted((Path(__file__).parents[1] / "data" / "regressions").iterdir())


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_what_fuzzing_found_ends_well(file, tmp_path):
    reader = file.name.partition("--")[0]
    assert file.stat().st_size < 20_000
    with limit_cpu(5), attempts.limited_memory():
        refusal = attempts.attempt(reader, file.read_bytes(), tmp_path)
    assert attempts.smell(refusal) is None, refusal
