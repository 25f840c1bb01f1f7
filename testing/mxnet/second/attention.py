"""Networks with attention; written for Python 3.7 and MXNet 2.0."""

import math

from mxnet import gluon, np, npx
from mxnet.gluon import nn

from testing.mxnet.second.blocks import HEADS, LENGTH, UNITS, VOCABULARY, chain, masked_softmax


class Attention(nn.HybridBlock):
    """Attention of several heads; ``form`` is how scores are masked."""

    def __init__(self, form="lengths", bias=False):
        super().__init__()
        self.form = form
        self.q, self.k, self.v, self.o = (
            nn.Dense(UNITS, use_bias=bias, flatten=False) for _ in range(4)
        )

    def split(self, x):
        x = x.reshape(x.shape[0], x.shape[1], HEADS, -1).transpose(0, 2, 1, 3)
        return x.reshape(-1, x.shape[2], x.shape[3])

    def forward(self, queries, keys, values, mask=None):
        q, k, v = self.split(self.q(queries)), self.split(self.k(keys)), self.split(self.v(values))
        scores = npx.batch_dot(q, k, transpose_b=True) / math.sqrt(q.shape[-1])
        if mask is None:
            weights = npx.softmax(scores)
        elif self.form == "lengths":
            weights = masked_softmax(scores, mask.repeat(HEADS, axis=0))
        elif self.form == "masked":
            weights = npx.masked_softmax(scores, mask)
        else:
            weights = npx.softmax(np.where(mask, scores, -1e18))
        y = npx.batch_dot(weights, v)
        y = y.reshape(-1, HEADS, y.shape[1], y.shape[2]).transpose(0, 2, 1, 3)
        return self.o(y.reshape(y.shape[0], y.shape[1], -1))


class EncoderBlock(nn.HybridBlock):
    def __init__(self, form="lengths", act="relu", first=False):
        super().__init__()
        self.first = first
        self.attention, self.norm1, self.norm2 = Attention(form), nn.LayerNorm(), nn.LayerNorm()
        inner = (
            nn.Dense(32, flatten=False, activation="relu")
            if act == "relu"
            else chain(nn.Dense(32, flatten=False), nn.GELU())
        )
        self.ffn = chain(inner, nn.Dense(UNITS, flatten=False))

    def forward(self, x, mask=None):
        if self.first:
            y = self.norm1(x)
            x = x + self.attention(y, y, y, mask)
            return x + self.ffn(self.norm2(x))
        x = self.norm1(x + self.attention(x, x, x, mask))
        return self.norm2(x + self.ffn(x))


class Transformer(nn.HybridBlock):
    """An encoder of words."""

    def __init__(self, form="lengths", act="relu", segments=False):
        super().__init__()
        self.embed, self.segment = nn.Embedding(VOCABULARY, UNITS), nn.Embedding(2, UNITS)
        self.position = gluon.Parameter("position", shape=(1, 20, UNITS))
        self.block0, self.block1 = EncoderBlock(form, act), EncoderBlock(form, act)

    def forward(self, tokens, mask=None, segments=None):
        x = self.embed(tokens) * math.sqrt(UNITS)
        if segments is not None:
            x = x + self.segment(segments)
        x = x + self.position.data()[:, : x.shape[1], :]
        return self.block1(self.block0(x, mask), mask)


class Bert(nn.HybridBlock):
    """Words that are hidden, and whether the second sentence follows."""

    def __init__(self):
        super().__init__()
        self.encoder, self.hidden = Transformer(act="gelu"), nn.Dense(UNITS, activation="tanh")
        self.words = chain(
            nn.Dense(UNITS, flatten=False, activation="relu"),
            nn.LayerNorm(),
            nn.Dense(VOCABULARY, flatten=False),
        )
        self.follows = nn.Dense(2)

    def forward(self, tokens, segments, lengths, places):
        x = self.encoder(tokens, lengths, segments)
        hot = npx.one_hot(places, x.shape[1])
        return x, self.words(npx.batch_dot(hot, x)), self.follows(self.hidden(x[:, 0, :]))


class Picking(nn.HybridBlock):
    """The states of some places, by advanced indexing."""

    def __init__(self):
        super().__init__()
        self.encoder = Transformer()

    def forward(self, tokens, places):
        x = self.encoder(tokens)
        rows = np.repeat(np.arange(0, 2), 3).astype("int32")
        return npx.gather_nd(x, np.stack([rows, places.reshape(-1).astype("int32")]))


class DecoderBlock(nn.HybridBlock):
    def __init__(self):
        super().__init__()
        self.own, self.cross = Attention("where"), Attention("lengths")
        self.norm0, self.norm1, self.norm2 = nn.LayerNorm(), nn.LayerNorm(), nn.LayerNorm()
        self.ffn = chain(
            nn.Dense(32, activation="relu", flatten=False), nn.Dense(UNITS, flatten=False)
        )

    def forward(self, x, memory, lengths):
        steps = np.arange(LENGTH)
        before = np.expand_dims(steps, 0) <= np.expand_dims(steps, 1)
        x = self.norm0(x + self.own(x, x, x, before))
        x = self.norm1(x + self.cross(x, memory, memory, lengths))
        return self.norm2(x + self.ffn(x))


class Translator(nn.HybridBlock):
    def __init__(self):
        super().__init__()
        self.encoder, self.embed = Transformer(), nn.Embedding(VOCABULARY, UNITS)
        self.decoder, self.out = DecoderBlock(), nn.Dense(VOCABULARY, flatten=False)

    def forward(self, source, lengths, target):
        memory = self.encoder(source, lengths)
        return self.out(self.decoder(self.embed(target), memory, lengths))


class Patches(nn.HybridBlock):
    """A transformer of the patches of an image."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2D(UNITS, 4, 4)
        self.mark = gluon.Parameter("mark", shape=(1, 1, UNITS))
        self.position = gluon.Parameter("position", shape=(1, 17, UNITS))
        self.block, self.norm, self.head = (
            EncoderBlock(act="gelu", first=True),
            nn.LayerNorm(),
            nn.Dense(10),
        )

    def forward(self, x):
        x = self.patch(x)
        x = x.reshape(x.shape[0], UNITS, -1).transpose(0, 2, 1)
        mark = np.repeat(self.mark.data(), x.shape[0], axis=0)
        x = np.concatenate([mark, x], axis=1) + self.position.data()
        return self.head(self.norm(self.block(x)[:, 0]))


def einsums(q, k, v):
    """Attention by Einstein sums."""
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / 2
    return np.einsum("bhqk,bkhd->bqhd", npx.softmax(scores, axis=-1), v)
