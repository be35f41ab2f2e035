"""SplitMix64, the random number generator of the CPU kernels."""

# mypy: disable-error-code="untyped-decorator"

from typing import Any

import numpy as np

from lgcn.utils.jit import jit

# Added to a state to get the next one. The sequence can start anywhere.
STEP = np.uint64(0x9E3779B97F4A7C15)


@jit
def mix(state: Any) -> Any:
    """The 64 random bits of a state."""
    z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
