"""A request as it came, before anybody has believed it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """Header names are lower case; `query` is as sent; `id` is what the answer calls the request."""

    id: str
    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    address: str

    def header(self, name: str) -> str | None:
        """None: it was not sent. Sent more than once: one text, with commas, as HTTP has it."""
        values = self.all_of(name)
        return ",".join(values) if values else None

    def all_of(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]
