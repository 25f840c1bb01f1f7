"""Train a small network on 8×8 digits with MXNet and leave its files next to this script.

Needs mxnet 1.9.1, scikit-learn and serde; a run takes a few seconds on one core.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from serde.bridges.numpy_compat import import_mxnet

HERE = Path(__file__).parent
EPOCHS, BATCH, SEED = 10, 32, 7


def digits() -> list[np.ndarray]:
    """Training images, test images, training labels, test labels; pixels from 0 to 1."""
    images, labels = load_digits(return_X_y=True)
    data = (images / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    split = train_test_split(
        data, labels.astype(np.float32), test_size=0.2, random_state=SEED, stratify=labels
    )
    return list(split)


def network(mx: Any) -> Any:
    """Two convolutions with BatchNorm, pooling, dropout and two dense layers."""
    x = mx.sym.Variable("data")
    for i, channels in enumerate((16, 32), start=1):
        x = mx.sym.Convolution(
            x, kernel=(3, 3), pad=(1, 1), num_filter=channels, no_bias=i == 1, name=f"conv{i}"
        )
        x = mx.sym.BatchNorm(x, fix_gamma=i == 1, name=f"bn{i}")
        x = mx.sym.Activation(x, act_type="relu", name=f"relu{i}")
    x = mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool1")
    x = mx.sym.Dropout(x, p=0.25, name="drop1")
    x = mx.sym.Flatten(x, name="flatten")
    x = mx.sym.FullyConnected(x, num_hidden=32, name="fc1")
    x = mx.sym.Activation(x, act_type="relu", name="relu3")
    x = mx.sym.FullyConnected(x, num_hidden=10, name="fc2")
    return mx.sym.SoftmaxOutput(x, name="softmax")


def main() -> None:
    """Train, write the files and print the accuracy on the held-out digits."""
    mx = import_mxnet()
    mx.random.seed(SEED)
    np.random.seed(SEED)  # NDArrayIter shuffles with it
    train_data, data, train_labels, labels = digits()
    batches = mx.io.NDArrayIter(train_data, train_labels, BATCH, shuffle=True)
    module = mx.mod.Module(network(mx), context=mx.cpu())
    module.fit(
        batches,
        num_epoch=EPOCHS,
        initializer=mx.init.Xavier(),
        optimizer="sgd",
        optimizer_params={"learning_rate": 0.05, "momentum": 0.9, "wd": 1e-4},
    )
    module.save_checkpoint(str(HERE / "digits"), EPOCHS)
    expected = module.predict(mx.io.NDArrayIter(data, labels, BATCH)).asnumpy()
    np.savez_compressed(HERE / "test.npz", data=data, labels=labels, expected=expected)
    print(f"accuracy on {len(data)} held-out digits: {np.mean(expected.argmax(1) == labels):.2%}")


if __name__ == "__main__":
    main()
