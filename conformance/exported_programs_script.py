"""Architectures with random weights: exported programs, and what PyTorch's exporter to ONNX makes.

    python -m conformance.exported_programs_script list
    python -m conformance.exported_programs_script core
    python -m conformance.exported_programs_script export NAME STEM

``core`` prints the overloads that PyTorch counts among the core ATen operators. The script runs in
a Python with PyTorch, beside the packages that ``torch_checkpoints_script`` names.
"""

import json
import sys
import warnings
from pathlib import Path

import torch
from torch import nn

from conformance import torch_checkpoints_script as zoo
from conformance.torch_checkpoints_script import SMALL, text, timm_model
from testing.pt2.worker import save_arrays, save_onnx, save_program


class Cache(nn.Module):
    """Attention over what was seen before, which a buffer holds."""

    def __init__(self):
        super().__init__()
        self.k, self.q = nn.Linear(8, 8), nn.Linear(8, 8)
        self.register_buffer("keys", torch.randn(2, 6, 8))
        self.register_buffer("length", torch.tensor([3]))

    def forward(self, x):
        """The scores of all places."""
        self.keys.index_copy_(1, self.length, self.k(x).unsqueeze(1))
        self.length.add_(1)
        return self.q(x).unsqueeze(1) @ self.keys.transpose(1, 2)


class MovingAverage(nn.Module):
    """Normalization by an average that each call moves."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 5)
        self.register_buffer("mean", torch.randn(5))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        """What differs from the average."""
        y = self.net(x)
        self.mean.mul_(0.9).add_(y.mean(0), alpha=0.1)
        self.calls += 1
        return y - self.mean


class Observer(nn.Module):
    """Quantization by the range that was seen so far."""

    def __init__(self):
        super().__init__()
        self.net = nn.Conv1d(3, 4, 3)
        self.register_buffer("low", torch.tensor(-0.1))
        self.register_buffer("high", torch.tensor(0.1))

    def forward(self, x):
        """Rounded to 256 steps."""
        y = self.net(x)
        self.low.copy_(torch.minimum(self.low, y.min()))
        self.high.copy_(torch.maximum(self.high, y.max()))
        step = (self.high - self.low) / 255
        return ((y - self.low) / step).round() * step + self.low


class Chooser(nn.Module):
    """One of two layers, by the data."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 5), nn.Linear(4, 5)

    def forward(self, x):
        """What the layer gives."""
        return torch.cond(x.sum() > 0, lambda x: self.a(x).relu(), lambda x: self.b(x) * 2, (x,))


class Iteration(nn.Module):
    """A layer as often as it takes to grow beyond a bound."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4)

    def forward(self, x):
        """The last values, and how many steps there were."""
        from torch._higher_order_ops.while_loop import while_loop

        def go_on(step, x):
            return (step < 10) & (x.abs().sum() < 100)

        def advance(step, x):
            return step + 1, torch.tanh(self.net(x)) + 1.5 * x

        return while_loop(go_on, advance, (torch.tensor(0), x))


class Spectrum(nn.Module):
    """A filter of frequencies."""

    def __init__(self):
        super().__init__()
        self.filter = nn.Parameter(torch.randn(9, 2))

    def forward(self, x):
        """The signal, filtered."""
        return torch.fft.irfft(torch.fft.rfft(x) * torch.view_as_complex(self.filter), n=16)


class Projection(nn.Module):
    """A recurrent layer whose states are projected."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(6, 10, 2, batch_first=True, bidirectional=True, proj_size=4)

    def forward(self, x):
        """The states of all steps."""
        return self.rnn(x)[0]


def training(name):
    """One of the models, as it is trained."""
    return lambda: MODELS[name]()


def audio(kind, config, **options):
    """A small model of transformers for sounds."""
    return lambda: (zoo.First(kind, config, **options), torch.randn(2, 800))


def image(kind, config, size=64, **options):
    """A small model of transformers for images."""
    return lambda: (zoo.First(kind, config, **options), torch.randn(2, 3, size, size))


ROPE = {**SMALL, "num_key_value_heads": 2, "head_dim": 8, "use_cache": False}
MODELS = {
    **zoo.MODELS,
    **{f"timm/{n}": timm_model(n) for n in (
        "mobilenetv3_small_050", "regnetx_002", "hrnet_w18_small", "res2net50_26w_4s", "resnest14d",
        "skresnet18", "fastvit_t8", "repvit_m0_9", "rexnet_100", "xception41", "dla34", "gernet_s",
        "eca_nfnet_l0", "convmixer_768_32", "mobilenetv4_conv_small", "inception_next_atto",
        "starnet_s1", "vovnet39a", "selecsls42")},
    **{f"timm/{n}": timm_model(n, 224) for n in (
        "xcit_nano_12_p16_224", "crossvit_9_240", "cait_xxs24_224", "pit_ti_224", "visformer_tiny",
        "tiny_vit_5m_224", "eva02_tiny_patch14_224", "focalnet_tiny_srf", "davit_tiny",
        "efficientformer_l1", "coat_lite_tiny", "volo_d1_224")},
    "timm/crossvit_9_240": timm_model("crossvit_9_240", 240),
    "timm/botnet26t_256": timm_model("botnet26t_256", 256),
    "timm/halonet26t": timm_model("halonet26t", 256),
    "timm/maxvit_rmlp_pico_rw_256": timm_model("maxvit_rmlp_pico_rw_256", 256),
    "transformers/qwen2": text("Qwen2ForCausalLM", "Qwen2Config", **ROPE),
    "transformers/mistral": text("MistralForCausalLM", "MistralConfig", **ROPE),
    "transformers/gemma": text("GemmaForCausalLM", "GemmaConfig", **ROPE),
    "transformers/gpt_neox": text("GPTNeoXForCausalLM", "GPTNeoXConfig", use_cache=False, **SMALL),
    "transformers/bloom": text("BloomForCausalLM", "BloomConfig", hidden_size=32, n_layer=2,
                               n_head=4, vocab_size=100, use_cache=False),
    "transformers/deberta": text("DebertaV2Model", "DebertaV2Config", **SMALL),
    "transformers/mpnet": text("MPNetModel", "MPNetConfig", **SMALL),
    "transformers/fnet": text("FNetModel", "FNetConfig", **SMALL),
    "transformers/mamba": text("MambaForCausalLM", "MambaConfig", hidden_size=32,
                               num_hidden_layers=2, state_size=4, vocab_size=100, use_cache=False),
    "transformers/wav2vec2": audio(
        "Wav2Vec2Model", "Wav2Vec2Config", **SMALL, conv_dim=(16, 16), conv_stride=(5, 2),
        conv_kernel=(10, 3), num_feat_extract_layers=2, num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4),
    "transformers/segformer": image(
        "SegformerForSemanticSegmentation", "SegformerConfig", depths=[1, 1, 1, 1],
        hidden_sizes=[8, 16, 16, 32], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=16),
    "transformers/convnextv2": image(
        "ConvNextV2Model", "ConvNextV2Config", depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 24, 32]),
    "transformers/clip": image("CLIPVisionModel", "CLIPVisionConfig", image_size=64, patch_size=16,
                               **{k: v for k, v in SMALL.items() if k != "vocab_size"}),
    "cond": lambda: (Chooser(), torch.randn(3, 4)),
    "while_loop": lambda: (Iteration(), torch.randn(3, 4)),
    "fft": lambda: (Spectrum(), torch.randn(3, 16)),
    "lstm_projection": lambda: (Projection(), torch.randn(2, 5, 6)),
    "buffers/cache": lambda: (Cache(), torch.randn(2, 8)),
    "buffers/moving_average": lambda: (MovingAverage(), torch.randn(3, 4)),
    "buffers/observer": lambda: (Observer(), torch.randn(2, 3, 9)),
    **{f"training/{n}": training(n) for n in (
        "torchvision/resnet18", "timm/resnet10t", "timm/repvgg_a0", "torchvision/densenet121",
        "timm/regnetx_002", "unet", "convolutions", "perceptron")},
}  # fmt: skip
FIXED = {  # the first axis that has to be of one size: buffers have it, or PyTorch's layers ask it
    "buffers/cache": 0, "lstm": 1, "tied": 1, "transformers/mamba": 1,
}  # fmt: skip


def export(name, stem):
    """Write the program, what it computes of a sample, and the file of PyTorch's exporter."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, x = MODELS[name]()
    zoo.train(model)
    model.train(name.startswith("training/"))
    named = range(min(FIXED.get(name, 2), 2 if x.dtype == torch.int64 else 1))
    sizes = (dict.fromkeys(named, torch.export.Dim.DYNAMIC),)
    with torch.no_grad():
        save_onnx(model, (x,), Path(f"{stem}.dynamo"), sizes)
        try:
            program = torch.export.export(model, (x,), dynamic_shapes=sizes)
        except Exception as error:
            Path(f"{stem}.error").write_text(f"{type(error).__name__}: {error}")
        else:
            save_program(program, Path(f"{stem}.pt2"))
        save_arrays(model, (x,), Path(f"{stem}.npz"))


def list_core():
    """The overloads that are tagged as core."""
    packets = (getattr(torch.ops.aten, name) for name in dir(torch.ops.aten))
    for packet in packets:
        for name in packet.overloads() if hasattr(packet, "overloads") else ():
            if torch.Tag.core in getattr(packet, name).tags:
                stem = packet._qualified_op_name.partition("::")[2]
                yield stem if name == "default" else f"{stem}.{name}"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    what, *rest = sys.argv[1:]
    if what == "list":
        print(json.dumps([*MODELS]))
    elif what == "core":
        print(json.dumps([*list_core()]))
    else:
        export(*rest)
