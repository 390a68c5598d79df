"""Answer with JSON in ASCII, so that a user's text in it steers no terminal that shows it."""

from typing import Any

from starlette.responses import JSONResponse

from steward.model.text import json_text


class JsonAnswer(JSONResponse):
    """A value as ASCII JSON: control and bidi characters are escaped, which every JSON reader undoes."""

    def render(self, content: Any) -> bytes:
        """Return the body of the answer."""
        return json_text(content, separators=(",", ":")).encode()
