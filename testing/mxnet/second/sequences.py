"""Networks of sequences and of ratings; written for Python 3.7 and MXNet 2.0."""

from mxnet import np, npx
from mxnet.gluon import nn, rnn

from testing.mxnet.second.blocks import LENGTH, UNITS, VOCABULARY, Function, chain, masked_softmax


class Seq2Seq(nn.HybridBlock):
    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(VOCABULARY, 8), nn.Embedding(VOCABULARY, 8)
        self.encoder, self.decoder = rnn.GRU(UNITS, 2), rnn.GRU(UNITS, 2)
        self.out = nn.Dense(VOCABULARY, flatten=False)

    def forward(self, source, target):
        begin = np.zeros((2, source.shape[0], UNITS))
        _, state = self.encoder(self.source(source).swapaxes(0, 1), [begin])
        x = self.target(target).swapaxes(0, 1)
        context = np.broadcast_to(np.expand_dims(state[0][-1], 0), (LENGTH, 2, UNITS))
        y, state = self.decoder(np.concatenate((x, context), 2), state)
        return self.out(y).swapaxes(0, 1), state[0]


class Additive(nn.HybridBlock):
    """Additive attention over a sequence, step by step."""

    def __init__(self):
        super().__init__()
        self.k, self.q = (
            nn.Dense(8, use_bias=False, flatten=False),
            nn.Dense(8, use_bias=False, flatten=False),
        )
        self.v, self.cell = (
            nn.Dense(1, use_bias=False, flatten=False),
            rnn.GRUCell(UNITS, input_size=2 * UNITS),
        )
        self.embed, self.encoder = nn.Embedding(VOCABULARY, UNITS), rnn.LSTM(UNITS, layout="NTC")

    def forward(self, source, lengths, target):
        memory = self.encoder(self.embed(source))
        state, outputs = memory[:, -1], []
        for x in np.split(self.embed(target), LENGTH, axis=1):
            features = np.tanh(np.expand_dims(self.q(state), 1) + self.k(memory))
            scores = np.swapaxes(self.v(features), 1, 2)
            context = npx.batch_dot(masked_softmax(scores, lengths), memory)
            y, (state,) = self.cell(np.concatenate((context, x), -1).squeeze(1), [state])
            outputs.append(y)
        return np.stack(outputs, axis=1)


class TextCnn(nn.HybridBlock):
    def __init__(self):
        super().__init__()
        self.embed, self.fixed = nn.Embedding(VOCABULARY, 8), nn.Embedding(VOCABULARY, 8)
        self.convs = chain(*(nn.Conv1D(6, size, activation="relu") for size in (2, 3, 4)))
        self.pool, self.out = nn.GlobalMaxPool1D(), nn.Dense(2)

    def forward(self, tokens):
        x = np.concatenate((self.embed(tokens), self.fixed(tokens)), axis=2).transpose(0, 2, 1)
        return self.out(
            np.concatenate([np.squeeze(self.pool(c(x)), axis=-1) for c in self.convs], axis=1)
        )


class Entailment(nn.HybridBlock):
    """Attend, compare, aggregate."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 8)
        self.f, self.g, self.h = (
            chain(nn.Dense(UNITS, activation="relu", flatten=False)) for _ in range(3)
        )
        self.out = nn.Dense(3)

    def forward(self, premise, hypothesis):
        a, b = self.embed(premise), self.embed(hypothesis)
        e = npx.batch_dot(self.f(a), self.f(b), transpose_b=True)
        beta = npx.batch_dot(npx.softmax(e), b)
        alpha = npx.batch_dot(npx.softmax(e.transpose(0, 2, 1)), a)
        va = self.g(np.concatenate([a, beta], axis=2)).sum(axis=1)
        vb = self.g(np.concatenate([b, alpha], axis=2)).sum(axis=1)
        return self.out(self.h(np.concatenate([va, vb], axis=1)))


class Factorization(nn.HybridBlock):
    """Products of pairs of features, with a network on top of them."""

    def __init__(self, deep):
        super().__init__()
        self.embed, self.linear = nn.Embedding(VOCABULARY, 8), nn.Embedding(VOCABULARY, 1)
        self.mlp = chain(nn.Dense(UNITS, activation="relu"), nn.Dense(1)) if deep else None

    def forward(self, x):
        e = self.embed(x)
        pairs = 0.5 * (np.sum(e, axis=1) ** 2 - np.sum(e**2, axis=1)).sum(1, keepdims=True)
        y = self.linear(x).sum(1) + pairs
        if self.mlp is not None:
            y = y + self.mlp(e.reshape(-1, LENGTH * 8))
        return npx.sigmoid(y)


class NeuralFactors(nn.HybridBlock):
    """Products and a network of the factors of users and items."""

    def __init__(self):
        super().__init__()
        self.p, self.q, self.u, self.v = (nn.Embedding(VOCABULARY, 8) for _ in range(4))
        self.mlp = chain(nn.Dense(UNITS, activation="relu"), nn.Dense(8, activation="relu"))
        self.out = nn.Dense(1, use_bias=False)

    def forward(self, users, items):
        gmf = self.p(users) * self.q(items)
        mlp = self.mlp(np.concatenate([self.u(users), self.v(items)], axis=1))
        return self.out(np.concatenate([gmf, mlp], axis=1))


class Caser(nn.HybridBlock):
    """Convolutions over the items that a user saw last, down and across."""

    def __init__(self):
        super().__init__()
        self.user, self.item, self.q = (nn.Embedding(VOCABULARY, n) for n in (8, 8, 16))
        self.b, self.fc = nn.Embedding(VOCABULARY, 1), nn.Dense(8, activation="relu")
        self.down = nn.Conv2D(2, (LENGTH, 1))
        self.across = chain(*(nn.Conv2D(3, (i + 1, 8), activation="relu") for i in range(LENGTH)))
        self.pools = [nn.MaxPool1D(LENGTH - i) for i in range(LENGTH)]

    def forward(self, users, sequence, items):
        rows = np.expand_dims(self.item(sequence), 1)
        features = [self.down(rows).reshape(2, -1)]
        for c, pool in zip(self.across, self.pools):  # noqa: B905
            features.append(np.squeeze(pool(np.squeeze(c(rows), axis=3)), axis=2))
        z = self.fc(np.concatenate(features, axis=1))
        x = np.concatenate([z, self.user(users.reshape(-1))], axis=1)
        q = np.squeeze(self.q(items), axis=1)
        return (x * q).sum(1) + np.squeeze(self.b(items), axis=(1, 2))


def recurrent(kind, states=False, **more):
    layer = getattr(rnn, kind)(UNITS, **more)
    layers = (
        2 * more.get("num_layers", 1) if more.get("bidirectional") else more.get("num_layers", 1)
    )

    def run(layer, out, x):
        begin = [np.zeros((layers, 2, UNITS)) for _ in range(2 if kind == "LSTM" else 1)]
        y, ends = layer(x, begin)
        return [out(y), *ends]

    def plain(layer, out, x):
        return out(layer(x))

    return Function(run if states else plain, layer, nn.Dense(5, flatten=False))


def unroll_cells(*cells):
    stack = rnn.HybridSequentialRNNCell()
    for cell in cells:
        stack.add(cell)

    def run(stack, x):
        return stack.unroll(LENGTH, x, layout="NTC", merge_outputs=True)[0]

    return Function(run, stack)


def both_ways(left, right):
    cell = rnn.BidirectionalCell(left, right)
    return Function(
        lambda cell, x: cell.unroll(LENGTH, x, layout="NTC", merge_outputs=True)[0], cell
    )


def grow(x):
    """Doubled while it is small."""
    return npx.while_loop(
        lambda y: y.sum() < 20, lambda y: (y + 1, [y * 2]), [npx.relu(x)], max_iterations=6
    )


def choose(x, y):
    """One of two branches."""
    return npx.cond(lambda a, b: a.sum() < 0, lambda a, b: a + b, lambda a, b: a * b, [x, y])


def statistics(x):
    """What NumPy's functions make of a batch."""
    center = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    ranked = np.sort(center, axis=1)
    return (
        ranked.max(axis=1),
        np.cumsum(center, axis=1),
        np.argmax(x, axis=1),
        np.where(x > 0, center, -center),
        np.clip(x, -1, 1),
        np.linalg.norm(x, axis=1),
        np.tile(x, (1, 2)),
        np.flip(x, axis=1),
        np.logaddexp(x, center),
        np.maximum(x, 0) ** 2,
    )
