"""Memory that a flood took goes back to the system, and a head that is as large as ever is left in peace."""

from dataclasses import dataclass

from steward.head.slim import EVERY_S, GREW, Slim, give_back, resident


@dataclass
class Process:
    size: int = 200 << 20
    now: float = 0.0
    collections: int = 0

    def give_back(self) -> None:
        self.collections += 1
        self.size -= GREW


def test_memory_is_given_back_after_it_grew_and_seldom() -> None:
    process = Process()
    slim = Slim(size=lambda: process.size, give_back=process.give_back, monotonic=lambda: process.now)
    process.now += EVERY_S
    assert not slim.look()
    process.size += 2 * GREW
    assert slim.look()
    process.size += 2 * GREW
    assert not slim.look(), "it was just done"
    process.now += EVERY_S
    assert slim.look()
    process.now += EVERY_S
    assert not slim.look(), "what is left is needed"


def test_what_was_freed_leaves_the_process() -> None:
    rings = []
    for _ in range(200_000):
        ring: list[object] = [bytes(300)]
        ring.append(ring)
        rings.append(ring)
    large = resident()
    rings.clear()
    del ring
    give_back()
    assert resident() < large - (40 << 20)
