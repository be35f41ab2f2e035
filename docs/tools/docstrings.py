"""Griffe extension: docstrings in the style of PyTorch and PyG as Markdown.

Roles become links where the reference has the name, and formulas become MathML.
"""

import re
import sys
import textwrap
from pathlib import Path
from typing import Any

from griffe import Extension

sys.path.insert(0, str(Path(__file__).parent))

from mathml import to_mathml
from pages import reference


class PlainDocstrings(Extension):  # type: ignore[misc]
    """Rewrites every docstring before it is parsed into sections."""

    def __init__(self) -> None:
        names = [name for page in reference().values() for name in page]
        self.targets = {name.rpartition(".")[2]: name for name in reversed(names)}

    def on_object(self, *, obj: Any, **_: Any) -> None:
        of_paper = obj.path.startswith("lgcn.paper")  # not in the reference
        if obj.docstring is not None and not obj.is_alias and not of_paper:
            obj.docstring.value = self.markdown(obj.docstring.value)

    def markdown(self, text: str) -> str:
        """reStructuredText as the docstrings use it, in Markdown."""
        text = re.sub(
            r"^( *)\.\. math::[ \n]((?:.*\n)(?:\1 +\S.*\n)*)",
            _formula,
            text + "\n",
            flags=re.MULTILINE,
        )
        text = re.sub(
            r"^( *)\.\. code-block:: (\w+)\n\n((?:(?:\1 +\S.*)?\n)+)",
            _code,
            text,
            flags=re.MULTILINE,
        )
        text = re.sub(r":math:`([^`]+)`", lambda m: to_mathml(re.sub(r"\s+", " ", m[1])), text)
        text = re.sub(r"`([^`<]+?)\s+<([^`>]+)>`__?", _link, text)
        return re.sub(r":(?:class|func|meth|mod|attr|data):`~?([^`]+)`", self._role, text)

    def _role(self, match: re.Match[str]) -> str:
        shown = match[1].removeprefix("lgcn.")
        target = self.targets.get(match[1].rpartition(".")[2])
        code = f"`{match[1].rpartition('.')[2] if target else shown}`"
        return f"[{code}][{target}]" if target else code


def _formula(match: re.Match[str]) -> str:
    tex = textwrap.dedent(match[2])
    return f'{match[1]}<div class="formula">{to_mathml(tex, block=True)}</div>\n'


def _code(match: re.Match[str]) -> str:
    code = textwrap.dedent(match[3]).strip("\n")
    block = f"```{match[2]}\n{code}\n```"
    return textwrap.indent(block, match[1]) + "\n\n"


def _link(match: re.Match[str]) -> str:
    words = re.sub(r"\s+", " ", match[1])
    return f"[{words}]({match[2]})"
