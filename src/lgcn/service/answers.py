"""How answers are written."""

from __future__ import annotations

import json
from typing import Any

from fastapi.responses import JSONResponse


class SafeJson(JSONResponse):
    """JSON in ASCII, so that any string of a request can be repeated in an answer."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
