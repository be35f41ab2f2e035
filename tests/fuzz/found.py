"""Failures that fuzzing found, kept as regression examples: one line of JSON per case."""

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

FILE = Path(__file__).parent / "found.jsonl"


@dataclass
class Failure:
    """A failing case.

    Args:
        target: The name of the target.
        buffer: The bytes of the case.
        kind: ``error``, ``crash``, ``time`` or ``memory``.
        where: Identifies the failure: the type of the error and where it was raised.
        error: The message.
        versions: Of Python and the libraries.
    """

    target: str
    buffer: bytes
    kind: str
    where: str
    error: str
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.target}-{hashlib.sha256(self.buffer).hexdigest()[:8]}"

    def to_line(self) -> str:
        return json.dumps({**asdict(self), "buffer": self.buffer.hex()}, sort_keys=True) + "\n"

    @classmethod
    def from_line(cls, line: str) -> "Failure":
        record = json.loads(line)
        return cls(**{**record, "buffer": bytes.fromhex(record["buffer"])})


def kept(file: Path = FILE) -> list[Failure]:
    """All examples of a file; none if it is missing."""
    lines = file.read_text().splitlines() if file.exists() else []
    return [Failure.from_line(line) for line in lines]


def keep(failure: Failure, file: Path) -> None:
    """Adds an example to a file, which stays sorted by name and is replaced in one step."""
    examples = {example.name: example for example in (*kept(file), failure)}
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    temporary.write_text("".join(examples[name].to_line() for name in sorted(examples)))
    temporary.replace(file)
