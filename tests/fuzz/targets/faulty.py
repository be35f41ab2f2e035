"""A target that does all that the fuzzer must survive. It is for the test of the fuzzer alone."""

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
