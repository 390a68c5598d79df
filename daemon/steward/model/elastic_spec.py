"""The words of `--elastic=`: how far a job may grow. The shim reads the same grammar (spank/elastic_spec.c)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from steward.model.bounds import MaxLen, Parsed
from steward.model.text import printable

MAX_TEXT = 200
MAX_NODES = 4096
MAX_SIZES = 64
USAGE = (
    "use MAX, MAX:STEP or A,B,C nodes (1 to 4096), then ,grace=S ,settle=S ,faulty=S ,snooze=S ,backoff=S "
    ",batch=N ,uneven=0|1"
)

_MOST_SIZES = 32
_NUMBER = re.compile(r"[0-9]{1,6}\Z")
_RANGES: Mapping[str, tuple[int, int]] = {
    "grace": (1, 86400),
    "settle": (0, 86400),
    "faulty": (0, 86400),
    "snooze": (0, 86400),
    "backoff": (0, 86400),
    "batch": (1, 999_999),
    "uneven": (0, 1),
}


class BadSpec(ValueError):
    """A refused value of `--elastic=`; `why` is the reason without the word and the usage."""

    def __init__(self, word: str, why: str) -> None:
        super().__init__(f"--elastic: {printable(word, 64)!r} {why}: {USAGE}")
        self.why = why


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticWords:
    """The words of the option, independent of the job's own size.

    Sizes are in nodes; options that were not given are not in `values`.
    """

    text: str
    sizes: tuple[int, ...]
    """Rising: a single size is the largest, several are the only sizes besides the job's own."""
    step: int
    """The step between two sizes, counted from the job's own; 0: only the listed sizes."""
    values: Mapping[str, int]

    @staticmethod
    def parse(text: str) -> "ElasticWords":
        """Parse the option. Raises BadSpec (a ValueError) with one line that names the wrong word and the reason."""
        if len(text) > MAX_TEXT:
            raise BadSpec(text, f"is longer than {MAX_TEXT} characters")
        sizes, step, values = _read(text.split(","))
        _check(text, sizes, values)
        return ElasticWords(text=text, sizes=tuple(sizes), step=0 if len(sizes) > 1 else step or 1, values=values)

    def from_base(self, base: int) -> tuple[int, ...]:
        """Return the sizes of a run whose job has `base` nodes: this one, and larger ones that can share the batch.

        Raises ValueError if there is no size to grow to, or too many sizes.
        """
        most = self.sizes[-1]
        if not self.step and self.sizes[0] < base:
            raise ValueError(f"--elastic names sizes from the job's own {base} nodes up")
        if self.step and (most - base) // self.step >= MAX_SIZES:
            raise ValueError(f"--elastic takes at most {MAX_SIZES} sizes: name a step, as in `{most}:{-(-most // 64)}`")
        larger = range(base + self.step, most + 1, self.step) if self.step else self.sizes
        sizes = (base, *(size for size in larger if size > base and self._can_share_batch(size)))
        if len(sizes) < 2:
            raise ValueError(f"--elastic must let the job grow beyond its own {base} nodes: {USAGE}")
        return sizes

    def _can_share_batch(self, nodes: int) -> bool:
        """Return whether the batch can be shared over `nodes` nodes."""
        return self.values.get("uneven", 1) == 1 or self.values["batch"] % nodes == 0


ElasticText = Annotated[str, MaxLen(MAX_TEXT), Parsed(ElasticWords.parse)]


def _read(words: list[str]) -> tuple[list[int], int, dict[str, int]]:
    sizes: list[int] = []
    values: dict[str, int] = {}
    step, after_sizes = 0, False
    for word in words:
        if "=" in word:
            after_sizes = True
            if not sizes:
                raise BadSpec(word, "stands before the sizes")
            _read_option(word, values)
        elif after_sizes or step:
            raise BadSpec(word, "is not known")
        else:
            step = _read_size(word, sizes)
    return sizes, step, values


def _read_size(word: str, sizes: list[int]) -> int:
    """Append the size in the word to `sizes`; return the step of MAX:STEP, else 0."""
    size, colon, step = word.partition(":")
    if not _NUMBER.match(size):
        raise BadSpec(word, "is not known")
    if not 1 <= int(size) <= MAX_NODES or len(sizes) == _MOST_SIZES:
        raise BadSpec(word, "is out of range")
    if sizes and int(size) <= sizes[-1]:
        raise BadSpec(word, "is not more than the size before it")
    sizes.append(int(size))
    if colon and (len(sizes) > 1 or not _NUMBER.match(step) or not 1 <= int(step) < int(size)):
        raise BadSpec(word, "is no MAX:STEP with a step of 1 to MAX - 1")
    return int(step) if colon else 0


def _read_option(word: str, values: dict[str, int]) -> None:
    key, _, value = word.partition("=")
    if key not in _RANGES:
        raise BadSpec(word, "is not known")
    if key in values:
        raise BadSpec(word, "is given twice")
    low, high = _RANGES[key]
    if not _NUMBER.match(value) or not low <= int(value) <= high:
        raise BadSpec(word, "is out of range")
    values[key] = int(value)


def _check(text: str, sizes: list[int], values: Mapping[str, int]) -> None:
    """Raise BadSpec for sizes that cannot work: of a list check each size, else the largest."""
    batch, even = values.get("batch"), values.get("uneven") == 0
    if len(sizes) == 1 and sizes[0] < 2:
        raise BadSpec(text, "leaves nothing to grow to")
    if even and batch is None:
        raise BadSpec(text, "needs batch=N")
    for size in sizes if batch is not None else ():
        if batch is not None and batch < size:
            raise BadSpec(text, "has fewer samples in a batch than nodes")
        if batch is not None and even and batch % size:
            raise BadSpec(text, "does not share its batch out evenly over each size (uneven=1 lets it)")
