"""Memory that a flood took goes back to the system, and a head that is as large as ever is left in peace."""

from dataclasses import dataclass

from steward.head.slim import EVERY_S, GREW, Slim, give_back, resident_bytes


@dataclass
class Process:
    size: int = 200 << 20
    now: float = 0.0
    collections: int = 0
    free: int = 0
    """Bytes of it that only have to be returned."""

    def slim(self) -> Slim:
        return Slim(size=lambda: self.size, trim=self.trim, give_back=self.give_back, monotonic=lambda: self.now)

    def trim(self) -> None:
        self.size, self.free = self.size - self.free, 0

    def give_back(self) -> None:
        self.collections += 1
        self.size -= GREW


def test_memory_is_given_back_after_it_grew_and_seldom() -> None:
    process = Process()
    slim = process.slim()
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


def test_the_process_is_not_stopped_where_what_is_free_has_only_to_be_returned() -> None:
    """A collection keeps the head from answering its agents: a user's flood must not bring one about each time."""
    process = Process()
    slim = process.slim()
    process.now += EVERY_S
    process.size, process.free = process.size + 3 * GREW, 3 * GREW
    assert slim.look()
    assert (process.size, process.collections) == (200 << 20, 0)


def test_what_was_freed_leaves_the_process() -> None:
    rings = []
    for _ in range(200_000):
        ring: list[object] = [bytes(300)]
        ring.append(ring)
        rings.append(ring)
    large = resident_bytes()
    rings.clear()
    del ring
    give_back()
    assert resident_bytes() < large - (40 << 20)
