"""Everything that users need has a name in ``lgcn``."""

import subprocess
import sys

import pytest

import lgcn


@pytest.mark.parametrize("name", lgcn.__all__)
def test_every_public_name_is_there(name: str) -> None:
    value = getattr(lgcn, name)
    assert value.__name__ == name
    assert value.__doc__
    assert name in dir(lgcn)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="nope"):
        lgcn.nope  # noqa: B018


def test_names_are_imported_when_they_are_used() -> None:
    code = "import sys, lgcn; assert 'torch' not in sys.modules; lgcn.load_run"
    code += "; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
