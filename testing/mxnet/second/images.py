"""Networks of images; written for Python 3.7 and MXNet 2.0."""

from mxnet import np, npx
from mxnet.gluon import nn

from testing.mxnet.second.blocks import Function, chain, conv


def lenet(act="sigmoid", pool=nn.AvgPool2D, norm=False):
    rest = (nn.BatchNorm(), nn.Activation(act)) if norm else ()
    inner = None if norm else act
    return chain(
        nn.Conv2D(6, 5, padding=2, activation=inner), *rest, pool(2, 2),
        nn.Conv2D(16, 5, activation=inner), *rest[1:], pool(2, 2), nn.Dense(20, activation=act),
        nn.Dropout(0.5), nn.Dense(10),
    )  # fmt: skip


def nin_block(channels, size, stride, padding):
    return chain(
        nn.Conv2D(channels, size, stride, padding, activation="relu"),
        nn.Conv2D(channels, 1, activation="relu"), nn.Conv2D(channels, 1, activation="relu"),
    )  # fmt: skip


def nin():
    return chain(
        nin_block(8, 5, 2, 0), nn.MaxPool2D(3, 2), nin_block(12, 3, 1, 1), nn.MaxPool2D(3, 2),
        nn.Dropout(0.5), nin_block(10, 3, 1, 1), nn.GlobalAvgPool2D(), nn.Flatten(),
    )  # fmt: skip


def inception(a, b, c, d):
    ways = (
        conv(a, 1, 0), chain(conv(b[0], 1, 0), conv(b[1])), chain(conv(c[0], 1, 0), conv(c[1], 5, 2)),
        chain(nn.MaxPool2D(3, 1, 1), conv(d, 1, 0)),
    )  # fmt: skip
    return Function(
        lambda w, x, y, z, data: np.concatenate((w(data), x(data), y(data), z(data)), 1), *ways
    )


def residual(channels, stride=1, groups=1):
    body = chain(
        nn.Conv2D(channels, 3, stride, 1, groups=groups), nn.BatchNorm(), nn.Activation("relu"),
        nn.Conv2D(channels, 3, 1, 1), nn.BatchNorm(),
    )  # fmt: skip
    side = nn.Conv2D(channels, 1, stride)
    return Function(lambda body, side, x: npx.relu(body(x) + side(x)), body, side)


def dense_block(count, channels):
    net = nn.HybridSequential()
    for _ in range(count):
        body = chain(nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(channels, 3, padding=1))
        net.add(Function(lambda body, x: np.concatenate((x, body(x)), axis=1), body))
    return net


class TinyDetector(nn.HybridBlock):
    """Boxes of two scales of an image, as priors, classes and offsets."""

    def __init__(self):
        super().__init__()
        self.base = chain(conv(8), nn.BatchNorm(), nn.MaxPool2D(2), conv(8), nn.MaxPool2D(2))
        self.next = chain(conv(8), nn.MaxPool2D(2))
        self.classes = chain(nn.Conv2D(8, 3, padding=1), nn.Conv2D(8, 3, padding=1))
        self.boxes = chain(nn.Conv2D(16, 3, padding=1), nn.Conv2D(16, 3, padding=1))

    def forward(self, x):
        anchors, classes, boxes = [], [], []
        for i, block in enumerate((self.base, self.next)):
            x = block(x)
            anchors.append(npx.multibox_prior(x, sizes=(0.2, 0.3), ratios=(1, 2, 0.5)))
            classes.append(npx.batch_flatten(self.classes[i](x).transpose(0, 2, 3, 1)))
            boxes.append(npx.batch_flatten(self.boxes[i](x).transpose(0, 2, 3, 1)))
        scores = np.concatenate(classes, axis=1).reshape(2, -1, 2)
        detections = npx.multibox_detection(
            npx.softmax(scores).transpose(0, 2, 1),
            np.concatenate(boxes, axis=1),
            np.concatenate(anchors, axis=1),
            nms_threshold=0.5,
        )
        return np.concatenate(anchors, axis=1), scores, detections


def generator():
    blocks = []
    for channels in (16, 8):
        blocks += [
            nn.Conv2DTranspose(channels, 4, 2, 1, use_bias=False),
            nn.BatchNorm(),
            nn.Activation("relu"),
        ]
    return chain(*blocks, nn.Conv2DTranspose(3, 4, 2, 1, activation="tanh"))


def discriminator():
    blocks = []
    for channels in (8, 16):
        blocks += [nn.Conv2D(channels, 4, 2, 1), nn.BatchNorm(), nn.LeakyReLU(0.2)]
    return chain(*blocks, nn.Conv2D(1, 4))


def segmentation():
    return chain(
        residual(8, 2),
        residual(16, 2),
        nn.Conv2D(5, 1),
        nn.Conv2DTranspose(5, 8, strides=4, padding=2),
    )


def norms():
    return chain(
        nn.Conv2D(8, 3),
        nn.GroupNorm(4),
        nn.Activation("softrelu"),
        nn.Conv2D(8, 3),
        nn.InstanceNorm(),
        nn.SiLU(),
        nn.Conv2D(8, 1),
        nn.LayerNorm(),
        nn.PReLU(),
        nn.ELU(),
        nn.SELU(),
        nn.Swish(),
        nn.GELU(),
    )
