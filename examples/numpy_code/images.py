"""Images before a network: resized, cropped, normalised, letterboxed, in plain NumPy."""

import numpy as np

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


def resize(image, height, width):
    """Bilinear, with half-pixel centres: (N, H, W, C) to (N, height, width, C) in float32."""
    rows, row_weights = _neighbours(image.shape[1], height)
    columns, column_weights = _neighbours(image.shape[2], width)
    x = image.astype(np.float32)
    upper, lower = x[:, rows[0]], x[:, rows[1]]
    x = upper + (lower - upper) * row_weights[:, None, None]
    left, right = x[:, :, columns[0]], x[:, :, columns[1]]
    return left + (right - left) * column_weights[:, None]


def _neighbours(size, new_size):
    places = (np.arange(new_size) + 0.5) * (size / new_size) - 0.5
    places = np.clip(places, 0, size - 1)
    first = np.floor(places).astype(np.int64)
    second = np.minimum(first + 1, size - 1)
    return (first, second), (places - first).astype(np.float32)


def normalise(image):
    """To zero mean and unit deviation, channels first."""
    x = (image * np.float32(1 / 255) - MEAN) / STD
    return np.transpose(x, (0, 3, 1, 2))


def classify(image, shorter=40, side=32):
    """The shorter side resized, the centre cropped, normalised: what classifiers take."""
    height, width = image.shape[1:3]
    scale = shorter / min(height, width)
    x = resize(image, int(height * scale), int(width * scale))
    top, left = (x.shape[1] - side) // 2, (x.shape[2] - side) // 2
    return normalise(x[:, top : top + side, left : left + side])


def letterbox(image, side=64):
    """The longer side resized, the rest grey, in 0 … 1, channels first: what YOLO takes."""
    height, width = image.shape[1:3]
    scale = min(side / height, side / width)
    new_height, new_width = round(height * scale), round(width * scale)
    top, left = (side - new_height) // 2, (side - new_width) // 2
    canvas = np.full((image.shape[0], side, side, 3), 114, np.float32)
    canvas[:, top : top + new_height, left : left + new_width] = resize(
        image, new_height, new_width
    )
    return np.transpose(canvas / np.float32(255), (0, 3, 1, 2))
