"""What fuzzing found, kept as regression examples: one small file per case."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "found"


@dataclass
class Failure:
    """A case that is not as it should be.

    Args:
        target: The name of the target.
        buffer: The bytes of the case.
        kind: ``error``, ``crash``, ``time`` or ``memory``.
        where: What makes two failures the same: the type of the error and where it was raised.
        error: What happened, for people.
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
        return f"{self.target}-{hashlib.sha256(self.buffer).hexdigest()[:8]}.json"

    def save(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        record = {**asdict(self), "buffer": self.buffer.hex()}
        path = folder / self.name
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
        temporary.replace(path)
        return path

    @classmethod
    def load(cls, path: Path) -> "Failure":
        record = json.loads(path.read_text())
        return cls(**{**record, "buffer": bytes.fromhex(record["buffer"])})


def kept(folder: Path = FOLDER) -> list[Path]:
    """The files of all examples."""
    return sorted(folder.glob("*.json"))
