"""Every target on derandomised cases, and on all cases that fuzzing has found."""

import warnings
from contextlib import suppress

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .cases import quiet
from .found import Failure, kept
from .rules import Refused
from .source import Source, random_buffer
from .targets import TARGETS, target

# Fewer for targets that train or read many files: their cases take longer.
CASES = dict.fromkeys(TARGETS, 100) | {"checkpoint": 25, "planetoid": 40, "tables_damaged": 40}
# A seed gives longer cases; the bytes of Hypothesis it can shrink.
BUFFERS = st.integers(0, 2**32 - 1).map(lambda seed: random_buffer(np.random.default_rng(seed)))
BUFFERS |= st.binary(max_size=300)


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LGCN_OFFLINE", "1")


def run(name: str, buffer: bytes) -> None:
    with warnings.catch_warnings():
        quiet()
        with suppress(Refused):
            target(name)(Source(buffer))


@pytest.mark.parametrize("name", TARGETS)
def test_target(name: str) -> None:
    @settings(
        max_examples=CASES[name],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(BUFFERS)
    def check(buffer: bytes) -> None:
        run(name, buffer)

    check()


@pytest.mark.parametrize("failure", kept(), ids=lambda failure: failure.name)
def test_what_fuzzing_found_stays_fixed(failure: Failure) -> None:
    run(failure.target, failure.buffer)


def test_properties_are_derandomised() -> None:
    """`make test` tries the same examples each time; `make fuzz` loads another profile."""
    chosen = hypothesis.settings()
    assert chosen.derandomize or chosen == hypothesis.settings.get_profile("random")
    assert not hypothesis.settings.get_profile("random").derandomize
