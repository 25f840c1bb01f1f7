"""Boxes behind a network: YOLO and SSD heads, in NumPy and ``serde.scan``."""

import numpy as np

import serde

ANCHORS = np.array([[10, 13], [16, 30], [33, 23]], np.float32)
STRIDE = 8
VARIANCES = np.array([0.1, 0.1, 0.2, 0.2], np.float32)


def sigmoid(x):
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


def decode_yolo(head, threshold=0.45, most=20):
    """(N, anchors * (5 + classes), rows, columns) to boxes, scores, labels, and which to keep."""
    batch, _, rows, columns = head.shape
    x = head.reshape(batch, len(ANCHORS), -1, rows, columns).transpose(0, 1, 3, 4, 2)
    x = sigmoid(x)
    across, down = np.meshgrid(np.arange(columns), np.arange(rows))
    grid = np.stack([across, down], -1).astype(np.float32)
    centre = (x[..., 0:2] * 2 - np.float32(0.5) + grid) * STRIDE
    size = (x[..., 2:4] * 2) ** 2 * ANCHORS[:, None, None]
    boxes = np.concatenate([centre - size / 2, centre + size / 2], -1).reshape(batch, -1, 4)
    classes = (x[..., 4:5] * x[..., 5:]).reshape(batch, rows * columns * len(ANCHORS), -1)
    return suppress(boxes, classes.max(-1), classes.argmax(-1), threshold, most)


def decode_ssd(offsets, logits, threshold=0.45, most=20):
    """Offsets (N, 4, rows, columns) from one prior each, and logits; class 0 is background."""
    batch, _, rows, columns = offsets.shape
    across, down = np.meshgrid(np.arange(columns) + 0.5, np.arange(rows) + 0.5)
    priors = np.stack([across / columns, down / rows], -1).reshape(-1, 2).astype(np.float32)
    side = np.float32(0.2)
    x = offsets.transpose(0, 2, 3, 1).reshape(batch, -1, 4) * VARIANCES
    centre, size = priors + x[..., :2] * side, side * np.exp(x[..., 2:])
    boxes = np.concatenate([centre - size / 2, centre + size / 2], -1)
    scores = logits.transpose(0, 2, 3, 1).reshape(batch, rows * columns, -1)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    scores = (scores / scores.sum(-1, keepdims=True))[..., 1:]
    return suppress(boxes, scores.max(-1), scores.argmax(-1), threshold, most)


def overlaps(boxes):
    """Intersection over union of all pairs: (N, K, 4) to (N, K, K)."""
    low = np.maximum(boxes[:, :, None, :2], boxes[:, None, :, :2])
    high = np.minimum(boxes[:, :, None, 2:], boxes[:, None, :, 2:])
    inner = np.prod(np.maximum(high - low, 0), -1)
    area = np.prod(boxes[..., 2:] - boxes[..., :2], -1)
    return inner / (area[:, :, None] + area[:, None, :] - inner)


def suppress(boxes, scores, labels, threshold, most):
    """The best boxes by score; ``keep`` is false where a better one of the class overlaps."""
    order = np.argsort(-scores, axis=-1, kind="stable")[:, :most]
    boxes = np.take_along_axis(boxes, order[..., None], 1)
    scores, labels = np.take_along_axis(scores, order, 1), np.take_along_axis(labels, order, 1)
    same = labels[:, :, None] == labels[:, None, :]
    clash = (overlaps(boxes) > threshold) & same & np.tri(most, most, -1, bool)

    def step(kept, row):
        place, clashing = row
        free = ~np.any(clashing & kept, -1)
        return kept | (free[:, None] & (np.arange(most) == place)), free

    none = np.zeros_like(scores, bool)
    _, keep = serde.scan(step, none, (np.arange(most), clash.transpose(1, 0, 2)))
    return {"boxes": boxes, "scores": scores, "labels": labels, "keep": keep.T}
