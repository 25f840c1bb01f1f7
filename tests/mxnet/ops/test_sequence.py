"""Operators on sequences of different lengths."""

from __future__ import annotations

from testing.mxnet.cases import case, f16, f32, f64, i32, of, operator_test, refuses

SHAPES = [(4, 3), (4, 3, 2), (4, 3, 2, 5)]
LENGTHS = of([2, 4, 1])
BATCH_FIRST = of([2, 1, 3, 2], "int32")
USED = {"use_sequence_length": True}
OPS = ("SequenceMask", "SequenceLast", "SequenceReverse")

CASES = [
    *(case(op, f32(*s)) for op in OPS for s in SHAPES[1:]),
    *(case(op, f32(*s), LENGTHS, **USED) for op in OPS for s in SHAPES[1:]),
    *(case(op, f32(*s), BATCH_FIRST, axis=1, **USED) for op in OPS[:2] for s in SHAPES[1:]),
    *(case(op, f32(4, 3, 2), axis=1) for op in OPS[:2]),
    *(
        case(op, make(4, 3, 2), LENGTHS.astype("int32"), **USED)
        for op in OPS
        for make in (f64, f16)
    ),
    case("SequenceMask", f32(4, 3), LENGTHS, value=-1.5, **USED),
    case("SequenceMask", i32(4, 3), LENGTHS.astype("int32"), value=-1, **USED),
    case("SequenceMask", f32(4, 3, 2), of([0, 4, 9]), **USED),
    case("SequenceReverse", f32(4, 3), LENGTHS, **USED),
    refuses("SequenceReverse", f32(4, 3), axis=1, says="axis=1"),
    refuses("SequenceMask", f32(4, 3), **USED, says="use_sequence_length without sequence_length"),
]

test_sequences = operator_test(CASES)
