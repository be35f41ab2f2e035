"""Griffe extension: docstrings as Markdown.

Roles and cross-references become links if the reference has the name, and formulas become MathML.
Both forms of a formula work: ``$x$`` as in Markdown, and ``:math:`` as in PyTorch and PyG.
"""

import re
import sys
import textwrap
from pathlib import Path
from typing import Any

from griffe import Alias, Extension

sys.path.insert(0, str(Path(__file__).parent))

from mathml import to_mathml
from pages import reference

LITERAL = r"(`*)([\d.e-]+|true|false|none|\"[^\"`]*\"|'[^'`]*')\1"


class PlainDocstrings(Extension):  # type: ignore[misc]
    """Rewrites every docstring before it is parsed into sections."""

    def __init__(self) -> None:
        names = [name for page in reference().values() for name in page]
        self.names = set(names)
        self.done: set[str] = set()
        self.targets = {name.rpartition(".")[2]: name for name in reversed(names)}

    def on_package(self, *, pkg: Any, **_: Any) -> None:
        """A module and its function may have one name, which Python gives to the function."""
        for name in self.names:
            *path, last = name.split(".")[1:]
            home = pkg[".".join(path)] if path else pkg
            member = home.members[last]
            target = member.final_target if member.is_alias else member
            if target.is_module and last in target.members:
                home.members[last] = Alias(last, target[last], parent=home)
                for child in target.members.values():  # not in the tree any more
                    self.on_object(obj=child)

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.is_alias or obj.path.startswith("lgcn.paper") or obj.path in self.done:
            return
        self.done.add(obj.path)
        if obj.docstring is not None:
            obj.docstring.value = self.markdown(obj.docstring.value)
        if obj.is_function:  # a private parameter is not for readers
            private = [p.name for p in obj.parameters if p.name.startswith("_")]
            for name in private:
                del obj.parameters[name]

    def markdown(self, text: str) -> str:
        """The Markdown and reStructuredText of docstrings as Markdown without formulas."""
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
        text = re.sub(r"(?<=\S)::$", ":", text, flags=re.MULTILINE)  # the code below is indented
        text = re.sub(r"^Attributes:\n((?: +.*\n|\n(?= ))+)", _attributes, text, flags=re.MULTILINE)
        text = _without_literal_defaults(text)
        text = re.sub(r"^( *)\$\$\n(.*?)\n *\$\$$", _formula, text, flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r":math:`([^`]+)`", lambda m: _inline(m[1]), text)
        # Not in code, where a dollar is a dollar.
        text = re.sub(r"(`+)[^`]+?\1|\$([^$`]+)\$", lambda m: _inline(m[2]) if m[2] else m[0], text)
        text = re.sub(r"`([^`<]+?)\s+<([^`>]+)>`__?", _link, text)
        text = re.sub(r"\[(`[^`\]]+`)\]\[([\w.]+)\]", self._reference, text)
        text = re.sub(r":(?:class|func|meth|mod|attr|data):`~?([^`]+)`", self._role, text)
        return re.sub(r"(?<![`\[])(`{1,2})(lgcn\.[\w.]+)\1(?![`\]])", self._name, text)

    def _role(self, match: re.Match[str]) -> str:
        shown = match[1].removeprefix("lgcn.")
        target = self.targets.get(match[1].rpartition(".")[2])
        code = f"`{match[1].rpartition('.')[2] if target else shown}`"
        return f"[{code}][{target}]" if target else code

    def _name(self, match: re.Match[str]) -> str:
        target = self.targets.get(match[2].rpartition(".")[2])
        return f"[`{match[2]}`][{target}]" if target else match[0]

    def _reference(self, match: re.Match[str]) -> str:
        return match[0] if match[2] in self.names else match[1]


def _attributes(match: re.Match[str]) -> str:
    """As a list. Griffe would guess types, and gives an attribute without one the last it saw."""
    items = re.sub(r"^(\w+(?:, \w+)*): ", r"- **`\1`** – ", textwrap.dedent(match[1]), flags=re.M)  # noqa: RUF001
    return f"**Attributes:**\n\n{items}"


def _without_literal_defaults(text: str) -> str:
    """Without the defaults of arguments that the reference takes from the signature as well."""
    lines = text.split("\n")
    alone = False
    for number, line in enumerate(lines):
        if item := re.match(r" +(\w+(?:, \w+)*): ", line):
            alone = "," not in item[1]
        if alone:
            lines[number] = re.sub(
                rf"(?:\s|^)\(default: {LITERAL}\)$", "", line, flags=re.IGNORECASE
            )
    return "\n".join(lines)


def _inline(tex: str) -> str:
    """In a span: a line that starts with a formula is otherwise taken for a block of HTML."""
    return f"<span>{to_mathml(' '.join(tex.split()))}</span>"


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
