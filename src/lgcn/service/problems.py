"""What can be wrong with a request, as an answer to the client."""

from __future__ import annotations

PROTOCOL = "/v2"  # where the addresses of the Open Inference Protocol start


class RequestError(Exception):
    """A request that is answered with an error.

    Args:
        message: What is wrong, what was got, what is wanted.
        field: The part of the request, such as `new_nodes[0].columns.age`. (default: none)
        status: The HTTP status. (default: 422)
        retry_after: Seconds after which to try again. (default: not said)
    """

    def __init__(
        self,
        message: str,
        field: str | None = None,
        status: int = 422,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.status = status
        self.retry_after = retry_after

    def content(self, path: str) -> dict[str, str]:
        """The body of the answer.

        Args:
            path: The address. The Open Inference Protocol wants one string and nothing else.
        """
        if self.field is None:
            return {"error": self.message}
        if path.startswith(PROTOCOL):
            return {"error": f"{self.field}: {self.message}"}
        return {"error": self.message, "field": self.field}


def shown(value: object) -> str:
    """A value of a request in a message, shortened."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
