"""What a consumer is written for by default."""

import pytest

from serde.ir.graph import EMPTY
from serde.legalize.target import Target
from serde.plugins.consumer import Consumer
from serde.plugins.deferred import Deferred

TARGET = Target("toy", opset=13)


def test_a_target_alone_is_a_consumer_of_its_name():
    consumer = Consumer.of(TARGET, "toy")
    assert (consumer.name, consumer.get_target()) == ("toy", TARGET)
    assert not consumer.runs_in_onnxruntime and consumer.reading == EMPTY
    declared = Consumer("toy", title="Toy")
    assert Consumer.of(declared, "other") is declared


@pytest.mark.parametrize(
    "consumer, default, known",
    [
        (Consumer("a"), 17, None),
        (Consumer("a", opset=12), 12, None),
        (Consumer("a", target=TARGET), 13, range(13, 14)),
        (Consumer("a", target=TARGET, opsets=range(11, 15)), 13, range(11, 15)),
    ],
)
def test_opsets(consumer, default, known):
    assert consumer.default_opset() == default
    assert consumer.known_opsets() == known


def test_a_target_may_be_imported_late():
    late = Consumer("a", target=Deferred("tests.test_consumer:TARGET"))
    assert late.default_opset() == 13
