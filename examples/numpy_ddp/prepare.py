"""Writes scikit-learn's digits to a file once, so that ranks need not import scikit-learn when they start.

usage: prepare.py FOLDER      writes FOLDER/digits.npz, unless it is there
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits


def main(folder: Path) -> None:
    """1797 pictures of 8x8 as rows of numbers from 0 to 1, and which digit each shows."""
    if (folder / "digits.npz").exists():
        return
    pictures, labels = load_digits(return_X_y=True)
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / ".digits.npz"
    np.savez(draft, pictures=pictures / 16.0, labels=labels.astype(np.int64))
    draft.replace(folder / "digits.npz")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
