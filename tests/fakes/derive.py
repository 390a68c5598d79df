"""Classes that stand in for a port: a method that a class does not define itself is made from the port's."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def derived(port: type, method: Callable[[str], Callable[..., Any]]) -> Callable[[type[T]], type[T]]:
    """Give a class each method of the port that none of its own bases defines; `method` makes it from its name."""

    def complete(kind: type[T]) -> type[T]:
        names = [name for name, value in vars(port).items() if callable(value) and not name.startswith("_")]
        own = [base for base in kind.__mro__ if base is not port]
        for name in names:
            if not any(name in vars(base) for base in own):
                setattr(kind, name, method(name))
        return kind

    return complete
