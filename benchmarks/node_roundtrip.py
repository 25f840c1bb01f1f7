"""Read, raise, lower and write every node test of onnx at its own opset; count what comes back.

``python -m benchmarks.node_roundtrip [WORD OF TEST NAMES …]``
"""

from __future__ import annotations

import sys
from typing import Any

from serde.errors import SerdeError
from tests.node_cases import Case, all_cases, converted, difference, results, verdict

HIDDEN = "onnx.reference runs a FlexAttention's bodies without the constants around them"
EXCUSED = {
    "test_image_decoder": "no runtime here decodes images: onnx.reference does with Pillow",
    "test_flexattention_causal": HIDDEN,
    "test_flexattention_prob": HIDDEN,
    "test_flexattention_relative": HIDDEN,
    "test_flexattention_score": HIDDEN,
    "test_flexattention_soft": HIDDEN,
}


def outcome(case: Case) -> str:
    """``right``, ``refused: …``, ``wrong: …``, or ``not run: …`` where no runtime can."""
    try:
        model = converted(case.model)
    except SerdeError as error:
        return f"refused: {str(error).splitlines()[-1].strip()}"
    said = verdict(case, model)
    if said == "right" or unchanged(case, model):
        return "right"
    if all(isinstance(r, Exception) for f, _ in case.data for _, r in results(case.model, f)):
        return f"not run: {said}"
    return f"wrong: {said}"


def unchanged(case: Case, model: Any) -> bool:
    """Whether a runtime gives for ``model`` what it gives for the test's own, right or not."""
    for feeds, _ in case.data:
        pairs = zip(results(case.model, feeds), results(model, feeds), strict=True)
        if not any(
            not isinstance(a, Exception)
            and not isinstance(b, Exception)
            and difference(case, a, b) is None
            for (_, a), (_, b) in pairs
        ):
            return False
    return True


def excuse(name: str) -> str | None:
    """Why a test cannot come back right, if that is known and not our doing."""
    return next((why for start, why in EXCUSED.items() if name.startswith(start)), None)


def main(words: list[str]) -> int:
    """Print the count of each outcome, and every test that is not right."""
    counts: dict[str, int] = {}
    for case in all_cases():
        if words and not any(w in case.name for w in words):
            continue
        said = outcome(case)
        kind, why = said.partition(":")[0], excuse(case.name)
        kind = "excused" if kind != "right" and why else kind
        counts[kind] = counts.get(kind, 0) + 1
        if kind != "right":
            print(f"{case.name} (opset {case.opset}): {why or said}", flush=True)
    print(", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    return 1 if counts.keys() - {"right", "excused"} else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
