"""Networks that MXNet itself quantises, with and without calibration."""

from __future__ import annotations

from testing import networks
from testing.mxnet_live import live_mxnet

HOW = {
    "calibrated": {"calib_mode": "naive"},
    "by channel": {
        "calib_mode": "naive", "quantize_mode": "full", "quantize_granularity": "channel-wise",
    },
    "as it runs": {"calib_mode": "none"},
}  # fmt: skip
CASES = (  # MXNet cannot run BatchNorm of integers without calibration
    ("resnet18_v1", "calibrated"), ("resnet18_v1", "as it runs"), ("resnet18_v2", "by channel"),
    ("mobilenetv2_0.25", "calibrated"), ("mobilenetv2_0.25", "as it runs"),
    ("squeezenet1.0", "as it runs"),
)  # fmt: skip


def quantise_network(name, how, folder):
    """The prefix of a network's files, and inputs."""
    mx = live_mxnet()
    from mxnet.contrib.quantization import quantize_model

    network = networks.build(name, networks.smallest(name))
    symbol_file, _ = networks.export(network, folder)
    feeds = networks.feeds(network, 2)
    prefix = str(symbol_file).removesuffix("-symbol.json")
    symbol, arguments, states = mx.model.load_checkpoint(prefix, 0)
    sample = {}
    if how != "as it runs":
        sample = {
            "calib_data": mx.io.NDArrayIter(dict(feeds), batch_size=2),
            "num_calib_examples": 2,
        }
    symbol, arguments, states = quantize_model(
        symbol.get_backend_symbol("MKLDNN_QUANTIZE"), arguments, states, data_names=list(feeds),
        label_names=None, ctx=mx.cpu(), quantized_dtype="auto", logger=None, **HOW[how], **sample,
    )  # fmt: skip
    symbol = symbol.get_backend_symbol("MKLDNN_QUANTIZE")
    symbol.save(str(folder / "q-symbol.json"))
    arrays = {f"arg:{n}": v for n, v in arguments.items()}
    mx.nd.save(str(folder / "q-0000.params"), arrays | {f"aux:{n}": v for n, v in states.items()})
    return folder / "q", feeds
