"""A two-layer network for pictures of digits, with its weights as one flat array."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
INPUTS, HIDDEN, CLASSES = 64, 128, 10
_SIZES = (INPUTS * HIDDEN, HIDDEN, HIDDEN * CLASSES, CLASSES)


def first_weights(seed: int) -> Array:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(0.0, 0.1, size) for size in _SIZES])


def loss_and_gradient(weights: Array, pictures: Array, labels: Labels) -> tuple[float, Array]:
    """Summed cross-entropy over the rows, and its gradient in the same flat order as the weights."""
    w1, b1, w2, b2 = _layers(weights)
    hidden = np.maximum(pictures @ w1 + b1, 0.0)
    scores = hidden @ w2 + b2
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    loss = -float(np.log(chances[rows, labels] + 1e-12).sum())
    chances[rows, labels] -= 1.0
    back = (chances @ w2.T) * (hidden > 0.0)
    parts = (pictures.T @ back, back.sum(axis=0), hidden.T @ chances, chances.sum(axis=0))
    return loss, np.concatenate([part.ravel() for part in parts])


def accuracy(weights: Array, pictures: Array, labels: Labels) -> float:
    w1, b1, w2, b2 = _layers(weights)
    scores = np.maximum(pictures @ w1 + b1, 0.0) @ w2 + b2
    return float((scores.argmax(axis=1) == labels).mean())


def _layers(weights: Array) -> tuple[Array, Array, Array, Array]:
    w1, b1, w2, b2 = np.split(weights, np.cumsum(_SIZES)[:-1])
    return w1.reshape(INPUTS, HIDDEN), b1, w2.reshape(HIDDEN, CLASSES), b2
