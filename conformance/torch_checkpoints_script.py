"""Architectures with random weights, exported by PyTorch, and what becomes of them.

    python torch_checkpoints_script.py list
    python torch_checkpoints_script.py export NAME FOLDER
    python torch_checkpoints_script.py check FOLDER EXPORTER

It runs in a Python with PyTorch; ``$SERDE_TORCH_ZOO`` is a folder of packages that it needs beside
it: onnx, onnxscript, torchvision, timm and transformers (``pip install --target``).
"""

import importlib.util
import json
import os
import sys
import types
from pathlib import Path

import numpy as np

sys.path.append(os.environ.get("SERDE_TORCH_ZOO", ""))
import torch
from torch import nn
from torch.nn import functional as F

# Builds of torchvision for another PyTorch lack operators that these models do not use.
sys.modules["torchvision._meta_registrations"] = types.ModuleType("none")


def vision(name, size=64, **options):
    """A model of torchvision."""

    def make():
        import torchvision

        model = getattr(torchvision.models, name)(weights=None, num_classes=10, **options)
        return model, torch.randn(2, 3, size, size)

    return make


class Segmentation(nn.Module):
    """A model that returns several results, of which this is one."""

    def __init__(self, name):
        import torchvision

        super().__init__()
        make = getattr(torchvision.models.segmentation, name)
        self.net = make(weights=None, weights_backbone=None, num_classes=5)

    def forward(self, x):
        """The classes of pixels."""
        return self.net(x)["out"]


def segmentation(name):
    """A model of torchvision for images."""
    return lambda: (Segmentation(name), torch.randn(2, 3, 64, 64))


def timm_model(name, size=64, **options):
    """A model of timm."""

    def make():
        import timm

        model = timm.create_model(name, num_classes=10, **options)
        return model, torch.randn(2, 3, size, size)

    return make


class First(nn.Module):
    """A model of transformers, of which the first result is returned."""

    def __init__(self, kind, config, **options):
        import transformers

        super().__init__()
        settings = getattr(transformers, config)(**options)
        settings._attn_implementation = "eager"
        pooled = kind in ("BertModel", "AlbertModel", "MobileBertModel", "ViTModel")
        more = {"add_pooling_layer": False} if pooled else {}
        self.model = getattr(transformers, kind)(settings, **more)
        self.options = {"use_cache": False} if options.get("use_cache") is False else {}

    def forward(self, x):
        """The first result."""
        return self.model(x, return_dict=False, **self.options)[0]


def text(kind, config, **options):
    """A small model of transformers for words."""
    return lambda: (First(kind, config, **options), torch.randint(0, 90, (2, 7)))


class LSTMNet(nn.Module):
    """Words, in both directions."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.rnn = nn.LSTM(16, 24, 2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(48, 5)

    def forward(self, x):
        """A class."""
        return self.head(self.rnn(self.embed(x))[0][:, -1])


class GRUNet(nn.Module):
    """Two layers and a head."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.GRU(8, 12, 2, batch_first=True)
        self.out = nn.Sequential(nn.Linear(12, 6), nn.ReLU(), nn.Linear(6, 3))

    def forward(self, x):
        """A class for each step."""
        return self.out(self.encoder(x)[0])


class TiedModel(nn.Module):
    """The words' table is the last layer's weight."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(60, 20)
        self.rnn = nn.LSTM(20, 20, batch_first=True)
        self.decoder = nn.Linear(20, 60)
        self.decoder.weight = self.embed.weight

    def forward(self, x):
        """The next words."""
        return self.decoder(self.rnn(self.embed(x))[0])


def double(channels, filters):
    """Two convolutions."""
    return nn.Sequential(
        nn.Conv2d(channels, filters, 3, padding=1, bias=False), nn.BatchNorm2d(filters), nn.ReLU(),
        nn.Conv2d(filters, filters, 3, padding=1, bias=False), nn.BatchNorm2d(filters), nn.ReLU(),
    )  # fmt: skip


class UNet(nn.Module):
    """Down and up again."""

    def __init__(self):
        super().__init__()
        self.inc = double(3, 8)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), double(8, 16))
        self.down2 = nn.Sequential(nn.MaxPool2d(2), double(16, 32))
        ups = [nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)]
        self.ups = nn.ModuleList(ups)
        self.convs = nn.ModuleList([double(32, 16), double(16, 8)])
        self.outc = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        """The classes of pixels."""
        x = self.inc(x)
        y = self.down1(x)
        z = self.ups[0](self.down2(y))
        z = self.convs[0](torch.cat([y, z], 1))
        z = self.convs[1](torch.cat([x, self.ups[1](z)], 1))
        return self.outc(z)


class Encoder(nn.Module):
    """Two layers of PyTorch's own attention."""

    def __init__(self):
        super().__init__()
        self.pos = nn.Parameter(torch.randn(1, 9, 16))
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.fc = nn.Linear(16, 4)

    def forward(self, x):
        """A class."""
        return self.fc(self.layers(x + self.pos).mean(1))


class Translator(nn.Module):
    """Attention between two sequences, of weights that are read in parts."""

    def __init__(self):
        super().__init__()
        self.t = nn.Transformer(16, 4, 2, 2, 32, batch_first=True)

    def forward(self, x):
        """The second sequence."""
        return self.t(x, x)


class Autoencoder(nn.Module):
    """Normalizations of groups and of samples."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 3, 2, 1), nn.PReLU(8), nn.Conv2d(8, 16, 3, 2, 1), nn.GroupNorm(4, 16)
        )
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(16, 8, 2, 2), nn.InstanceNorm2d(8, affine=True), nn.ELU(),
            nn.ConvTranspose2d(8, 1, 2, 2), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x):
        """The image again."""
        return self.decoder(self.encoder(x))


class Perceptron(nn.Module):
    """Layers in a list."""

    def __init__(self):
        super().__init__()
        self.body = nn.ModuleList([nn.Linear(8, 16), nn.Linear(16, 16)])
        self.norm = nn.BatchNorm1d(16)
        self.head = nn.Linear(16, 2, bias=False)

    def forward(self, x):
        """A class."""
        for layer in self.body:
            x = F.relu(layer(x))
        return self.head(self.norm(x))


class Convolutions(nn.Module):
    """Of sequences, with biases before normalizations."""

    def __init__(self):
        super().__init__()
        layers = [
            nn.Sequential(
                nn.Conv1d(8 if at else 4, 8, 3, padding=2**at, dilation=2**at),
                nn.BatchNorm1d(8),
                nn.ReLU(),
            )
            for at in range(3)
        ]
        self.blocks = nn.Sequential(*layers)
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        """A class."""
        return self.fc(self.blocks(x).mean(-1))


def vision_transformer():
    """A small one of torchvision."""
    import torchvision

    return torchvision.models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=10), torch.randn(
        2, 3, 32, 32
    )


SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 64, "vocab_size": 100}  # fmt: skip
WORDS = torch.arange(14).reshape(2, 7)
MODELS = {
    **{f"torchvision/{n}": vision(n) for n in (
        "resnet18", "resnext50_32x4d", "alexnet", "densenet121", "mobilenet_v2",
        "mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x0_5", "efficientnet_b0",
        "regnet_y_400mf", "mnasnet0_5", "convnext_tiny", "swin_t")},
    "torchvision/vgg11_bn": vision("vgg11_bn", 32),
    "torchvision/googlenet": vision("googlenet", aux_logits=False, init_weights=False),
    "torchvision/inception_v3": vision("inception_v3", 96, aux_logits=False, init_weights=False),
    "torchvision/vit": vision_transformer,
    **{f"torchvision/{n}": segmentation(n) for n in (
        "fcn_resnet50", "lraspp_mobilenet_v3_large", "deeplabv3_mobilenet_v3_large")},
    **{f"timm/{n}": timm_model(n) for n in (
        "resnet10t", "convnext_atto", "ghostnet_050", "repvgg_a0", "edgenext_xx_small",
        "poolformer_s12", "mobilevit_xxs", "efficientnet_lite0")},
    "timm/vit_tiny": timm_model("vit_tiny_patch16_224", 224, depth=3),
    "timm/mixer_s32": timm_model("mixer_s32_224", 224),
    "timm/levit_128s": timm_model("levit_128s", 224),
    "transformers/bert": text("BertModel", "BertConfig", **SMALL),
    "transformers/distilbert": text("DistilBertModel", "DistilBertConfig", dim=32, n_layers=2,
                                    n_heads=4, hidden_dim=64, vocab_size=100),
    "transformers/gpt2": text("GPT2LMHeadModel", "GPT2Config", n_embd=32, n_layer=2, n_head=4,
                              vocab_size=100, use_cache=False),
    "transformers/roberta": text("RobertaForSequenceClassification", "RobertaConfig", **SMALL),
    "transformers/albert": text("AlbertModel", "AlbertConfig", embedding_size=16, **SMALL),
    "transformers/electra": text("ElectraModel", "ElectraConfig", embedding_size=16, **SMALL),
    "transformers/llama": text("LlamaForCausalLM", "LlamaConfig", use_cache=False, **SMALL),
    "transformers/t5": text("T5EncoderModel", "T5Config", d_model=32, d_ff=64, num_layers=2,
                            num_heads=4, d_kv=8, vocab_size=100),
    "transformers/opt": text("OPTForCausalLM", "OPTConfig", use_cache=False, ffn_dim=64,
                             word_embed_proj_dim=32, hidden_size=32, num_hidden_layers=2,
                             num_attention_heads=4, vocab_size=100),
    "transformers/mobilebert": text(
        "MobileBertModel", "MobileBertConfig", **{**SMALL, "intermediate_size": 32},
        embedding_size=16, intra_bottleneck_size=16, true_hidden_size=16),
    "transformers/vit": lambda: (
        First("ViTModel", "ViTConfig", **SMALL_VIT), torch.randn(2, 3, 32, 32)),
    "lstm": lambda: (LSTMNet(), WORDS), "gru": lambda: (GRUNet(), torch.randn(2, 5, 8)),
    "tied": lambda: (TiedModel(), WORDS), "unet": lambda: (UNet(), torch.randn(2, 3, 32, 32)),
    "encoder": lambda: (Encoder(), torch.randn(2, 9, 16)),
    "translator": lambda: (Translator(), torch.randn(2, 9, 16)),
    "autoencoder": lambda: (Autoencoder(), torch.randn(2, 1, 16, 16)),
    "perceptron": lambda: (Perceptron(), torch.randn(3, 8)),
    "convolutions": lambda: (Convolutions(), torch.randn(2, 4, 20)),
}  # fmt: skip
SMALL_VIT = {"image_size": 32, "patch_size": 8,
             **{k: v for k, v in SMALL.items() if k != "vocab_size"}}  # fmt: skip


def train(model):
    """Let every array be one that training may end with, none like another."""
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.affine:
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias)
    with torch.no_grad():
        for array in model.parameters():
            spread = array.std().item() if array.numel() > 1 else 0
            array.add_(torch.randn_like(array) * (0.1 * spread if spread > 1e-6 else 0.02))


def export(name, folder):
    """Write the checkpoint, a sample, and the file of each exporter that takes the model."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, x = MODELS[name]()
    train(model)
    model.eval()
    with torch.no_grad():
        np.savez(folder / "sample.npz", x=x.numpy(), y=model(x).numpy())
    torch.save(model.state_dict(), folder / "checkpoint.pt")
    names = {0: "batch", 1: "length"} if x.dtype == torch.int64 else {0: "batch"}
    sizes = (dict.fromkeys(names, torch.export.Dim.DYNAMIC),)
    script = {"dynamo": False, "opset_version": 17, "dynamic_axes": {"x": names}}
    unfolded = {"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False}
    ways = {
        "dynamo": {"dynamo": True, "dynamic_shapes": sizes, "external_data": False},
        "script": script, "unfolded": script | unfolded,
    }  # fmt: skip
    for way, options in ways.items():
        try:
            torch.onnx.export(
                model, (x,), str(folder / f"{way}.onnx"), input_names=["x"], **options
            )
        except Exception as error:  # an exporter's own limits
            (folder / f"{way}.txt").write_text(f"{type(error).__name__}")


def check(folder, way):
    """Print how the written module differs from the model, also with its checkpoint."""
    spec = importlib.util.spec_from_file_location("written", folder / f"{way}.py")
    written = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(written)
    arrays = np.load(folder / "sample.npz")
    x, y = torch.from_numpy(arrays["x"]), arrays["y"]
    model = written.load()
    result = {"error": measure(model, x, y)}
    checkpoint = torch.load(folder / "checkpoint.pt", weights_only=True)
    own = model.state_dict()
    shapes = [k for k, v in checkpoint.items() if k in own and own[k].shape != v.shape]
    result["missing"] = sorted({*checkpoint} - {*own})
    result["more"] = sorted({*own} - {*checkpoint}) + shapes
    if not result["missing"] and not result["more"]:
        with torch.no_grad():
            for array in model.parameters():
                array.zero_()
        model.load_state_dict(checkpoint)
        result["loaded"] = measure(model, x, y)
    try:
        torch.export.export(model, (x,))
    except Exception as error:
        result["export"] = f"{type(error).__name__}: {error}"[:200]
    print(json.dumps(result))


def measure(model, x, y):
    """The largest difference, in terms of the largest number."""
    with torch.no_grad():
        got = model(x).numpy()
    return float(np.abs(got - y).max() / np.abs(y).max())


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "list":
        print(json.dumps([*MODELS]))
    elif what == "export":
        export(rest[0], Path(rest[1]))
    else:
        check(Path(rest[0]), rest[1])
