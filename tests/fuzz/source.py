"""Choices made from a byte string."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

MAX_LENGTH = 1 << 14  # bytes of a case
# Around the ends of the integer types, where products and differences overflow.
ENDS = tuple(
    sorted(
        {s * 2**b + d for b in (7, 8, 15, 16, 31, 32, 62, 63) for s in (1, -1) for d in (-1, 0, 1)}
    )
)


class Source:
    """Makes the choices of one case. After its last byte, every choice is the first option."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        """The next bytes, fewer at the end."""
        start = self._at
        self._at = start + count
        return self._data[start : self._at]

    def below(self, bound: int) -> int:
        """A number in range(bound)."""
        if bound <= 256:
            at = self._at
            self._at = at + 1
            return self._data[at] % bound if at < len(self._data) else 0
        return int.from_bytes(self.take((bound.bit_length() + 14) // 8), "little") % bound

    def between(self, low: int, high: int) -> int:
        """A number from ``low`` to ``high``, both included."""
        return low + self.below(high - low + 1)

    def choice(self, values: Sequence[T]) -> T:
        return values[self.below(len(values))]

    def flag(self) -> bool:
        return self.below(2) == 1

    def rarely(self) -> bool:
        """True in one of 16 cases."""
        return self.below(16) == 15

    def several(self, values: Sequence[T], most: int, least: int = 0) -> list[T]:
        """Up to ``most`` of the values, repeated or not."""
        return [self.choice(values) for _ in range(self.between(least, most))]

    def integer(self, low: int = -(2**63), high: int = 2**63 - 1) -> int:
        """An integer in this range: mostly a small one, else one at the end of a type."""
        kind = self.below(8)
        if kind < 5:
            number = self.between(-3, 20)
        else:
            number = self.choice(ENDS) if kind < 7 else self.between(-(2**63), 2**63 - 1)
        return min(max(number, low), high)

    def text(self, most: int = 8) -> str:
        """A string of any characters, mostly ASCII."""
        characters = []
        for _ in range(self.below(most + 1)):
            kind = self.below(8)
            code = self.between(32, 126) if kind < 6 else self.below(256 if kind == 6 else 0x110000)
            characters.append(chr(code))
        return "".join(characters)

    def rng(self) -> Any:
        """A generator for arrays whose numbers need not be chosen one by one."""
        return np.random.Generator(np.random.PCG64(self.below(1 << 16)))


def random_buffer(rng: Any) -> bytes:
    """The bytes of a case: mostly short, some with few distinct bytes."""
    length = int(2 ** rng.uniform(3, 12)) if rng.random() < 0.97 else MAX_LENGTH
    if rng.random() < 0.1:
        return rng.choice(rng.integers(0, 256, 3, np.uint8), length).tobytes()
    return rng.bytes(length)


def mutated(data: bytes, other: bytes, rng: Any) -> bytes:
    """A case like ``data``: some bytes are changed, removed, added, or taken from ``other``."""
    changed = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(0, len(changed) + 1))
        kind = rng.integers(0, 4)
        if kind == 0 and at < len(changed):
            changed[at] = int(rng.integers(0, 256))
        elif kind == 1:
            del changed[at : at + int(rng.integers(1, 5))]
        elif kind == 2:
            changed[at:at] = rng.bytes(int(rng.integers(1, 5)))
        else:
            start = int(rng.integers(0, len(other) + 1))
            changed[at:] = other[start:]
    return bytes(changed[:MAX_LENGTH])
