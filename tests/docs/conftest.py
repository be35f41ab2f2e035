"""The tools of the documentation can be imported: they are programs beside it, in no package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "tools"))
