"""The folder in which commands are killed."""

from collections.abc import Iterator

import pytest

from .checks import Laboratory
from .trials import Machine, Unavailable


@pytest.fixture(scope="session")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    try:
        machine = Machine()
    except Unavailable as reason:
        pytest.skip(str(reason))
    with machine:
        yield Laboratory(machine, tmp_path_factory.mktemp("crash"))
