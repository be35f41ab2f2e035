"""A target that does everything the fuzzer must survive. Only the fuzzer's own test uses it."""

import os
import signal

import numpy as np

from ..rules import Refused
from ..source import Source


def faulty_target(source: Source) -> None:
    kind = source.below(64)
    if kind == 1:
        raise Refused("a case that is refused")
    assert kind != 2, "a case that fails"
    if kind == 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    while kind == 4:
        pass
    if kind == 5:
        np.ones(1 << 36, np.uint8)
