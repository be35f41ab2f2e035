# ruff: noqa: RUF001 (the symbols are meant)
"""The TeX that docstrings use as MathML, which browsers show without a script or a network."""

import re
from html import escape

SYMBOLS = {
    "Vert": "‖", "lVert": "‖", "rVert": "‖", "alpha": "α", "beta": "β", "cdot": "·", "dots": "…",
    "ell": "ℓ", "epsilon": "ϵ", "ge": "≥", "in": "∈", "lambda": "λ", "lceil": "⌈", "ldots": "…",
    "le": "≤", "leftarrow": "←", "mid": "|", "ne": "≠", "odot": "⊙", "prime": "′", "rceil": "⌉",
    "sigma": "σ", "sum": "∑", "theta": "θ", "times": "×", "to": "→", "{": "{", "}": "}", "_": "_",
    "%": "%",
}  # fmt: skip
LETTERS = ("alpha", "beta", "ell", "epsilon", "lambda", "sigma", "theta")
NAMES = ("exp", "log", "max", "min")  # set upright
SPACES = {",": 0.17, ";": 0.28, " ": 0.28, "quad": 1, "qquad": 2, "!": 0}
ACCENTS = {"bar": "¯", "hat": "^", "tilde": "~"}
STYLES = {"mathbf": "bold", "mathcal": "script"}
SCRIPT = {"L": "ℒ", "N": "𝒩", "O": "𝒪"}
TOKEN = re.compile(r"\\([a-zA-Z]+|.)|([0-9.]*[0-9])|(\s+)|(.)", flags=re.DOTALL)


class UnknownCommand(ValueError):
    """A formula uses a command that is not in the tables above."""


def to_mathml(tex: str, *, block: bool = False) -> str:
    """A formula as a <math> element; ``&`` and ``\\\\`` align the lines of a block."""
    lines = [line for line in re.split(r"\\\\", tex.strip()) if line.strip()]
    if len(lines) == 1 and "&" not in tex:
        body = _Reader(lines[0]).row()
    else:
        rows = (
            "".join(f"<mtd>{_Reader(c).row()}</mtd>" for c in line.split("&")) for line in lines
        )
        body = (
            f'<mtable columnalign="right left">{"".join(f"<mtr>{r}</mtr>" for r in rows)}</mtable>'
        )
    display = ' display="block"' if block else ""
    return f"<math{display}>{body}</math>"


class _Reader:
    def __init__(self, tex: str) -> None:
        self.tokens = [match for match in TOKEN.finditer(tex) if not match[3]]
        self.at = 0

    def row(self, end: str | None = None) -> str:
        """All up to the end, or up to a closing brace."""
        parts: list[str] = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if end is not None and token[4] == end:
                self.at += 1
                break
            if token[4] in ("_", "^"):
                parts.append(self._scripts(parts.pop() if parts else "<mrow></mrow>"))
            else:
                parts.append(self._atom())
        return f"<mrow>{''.join(parts)}</mrow>"

    def _scripts(self, base: str) -> str:
        found: dict[str, str] = {}
        while self.at < len(self.tokens) and self.tokens[self.at][4] in ("_", "^"):
            kind = str(self.tokens[self.at][4])
            self.at += 1
            found[kind] = self._atom()
        tall = "∑" in base
        if len(found) == 2:
            tag = "munderover" if tall else "msubsup"
            return f"<{tag}>{base}{found['_']}{found['^']}</{tag}>"
        [(kind, script)] = found.items()
        names = {"_": ("msub", "munder"), "^": ("msup", "mover")}[kind]
        return f"<{names[tall]}>{base}{script}</{names[tall]}>"

    def _atom(self) -> str:
        token = self.tokens[self.at]
        self.at += 1
        if token[1]:
            return self._command(token[1])
        if token[2]:
            return f"<mn>{token[2]}</mn>"
        if token[4] == "{":
            return self.row("}")
        kind = "mi" if token[4].isalpha() else "mo"
        return f"<{kind}>{escape(token[4].replace('-', '−'))}</{kind}>"

    def _text(self) -> str:
        """The letters of a braced argument."""
        inner = []
        self.at += 1
        while self.tokens[self.at][4] != "}":
            inner.append(self.tokens[self.at][1] or self.tokens[self.at][0])
            self.at += 1
        self.at += 1
        return "".join(inner)

    def _command(self, name: str) -> str:
        if name in STYLES:
            letters = self._text()
            if name == "mathcal":
                return f"<mi>{''.join(SCRIPT.get(letter, letter) for letter in letters)}</mi>"
            return f'<mi mathvariant="normal"><b>{escape(letters)}</b></mi>'
        if name in ("mathrm", "text", "operatorname"):
            return f'<mi mathvariant="normal">{escape(self._text())}</mi>'
        if name in ACCENTS:
            return f'<mover accent="true">{self._atom()}<mo>{ACCENTS[name]}</mo></mover>'
        if name in ("frac", "tfrac"):
            return f"<mfrac>{self._atom()}{self._atom()}</mfrac>"
        if name == "sqrt":
            return f"<msqrt>{self._atom()}</msqrt>"
        if name in ("left", "right", "big", "Big"):
            return self._atom()
        if name in NAMES:
            return f"<mi>{name}</mi>"
        if name in SPACES:
            return f'<mspace width="{SPACES[name]}em"></mspace>'
        if name in SYMBOLS:
            kind = "mi" if name in LETTERS else "mo"
            return f"<{kind}>{SYMBOLS[name]}</{kind}>"
        raise UnknownCommand(f"\\{name}: add it to {__name__}")
