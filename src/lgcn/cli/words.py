"""The command line's words: flags where the library's errors and notes name arguments."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from typer.core import TyperCommand

from lgcn.errors import Interrupted, LGCNError

# A name in quotes, in a path or in a longer name is the user's own.
_START, _END = r"(?<![\w'\"/.=-])", r"(?![\w'\"/])"
_VALUE = r"'[^']*'|\"[^\"]*\"|[\w.]*\w"
# Names that are English words too count as names before "must", in pairs, and after the cues.
_WORDS = ("val", "test", "delimiter", "encoding", "memory", "seed", "layer", "features", "root")
_TABLES = ("edges", "nodes")  # these only after "give" and before a colon
_CUES = "Give|give|Raise|raise|without"

_flags: ContextVar[Mapping[str, str]] = ContextVar("flags", default=MappingProxyType({}))


class Command(TyperCommand):
    """A command whose errors name its flags, and which Ctrl-C ends with a word."""

    def invoke(self, ctx: Any) -> Any:
        flags = {
            parameter.name: flag
            for parameter in self.params
            for flag in parameter.opts[:1]
            if parameter.name and flag.startswith("--")
        }
        with flag_names(**flags):
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                raise Interrupted("stopped") from None


@contextmanager
def flag_names(**flags: str) -> Iterator[None]:
    """Within the block, errors and notes name these flags for the library's arguments."""
    token = _flags.set({**_flags.get(), **flags})
    try:
        yield
    except LGCNError as error:
        error.args = (in_flags(str(error)), *error.args[1:])
        raise
    finally:
        _flags.reset(token)


def in_flags(text: str) -> str:
    """A message of the library with flags for arguments.

    ``unknown_nodes='drop'`` becomes ``--unknown-nodes drop``, ``edges=None`` ``--edges none``, and
    ``overwrite=True`` ``--overwrite``.
    """
    flags = _flags.get()
    if "set_" in flags:  # a setting has its name on the command line too
        from lgcn.training.settings import TOP, flat_names

        settings = {*TOP, *flat_names()}
        flags = {name: flags[name] for name in flags if name not in settings}
    words = _one_of(name for name in flags if name in _WORDS)
    tables = _one_of(name for name in flags if name in _TABLES)
    rules = (
        rf"{_START}(?P<name>{_one_of(flags)})=(?P<value>{_VALUE})",
        rf"{_START}(?P<name>{_one_of(name for name in flags if '_' in name)}){_END}",
        rf"{_START}(?P<name>{words})(?= (?:and|\+) {words}\b)",
        rf"(?P<cue>--[\w-]+ (?:and|\+) )(?P<name>{words}){_END}",
        rf"{_START}(?P<name>{words})(?= must\b)",
        rf"^(?P<name>{tables})(?=: )",
        rf"(?P<cue>\b(?:{_CUES}) )(?P<name>{words}){_END}",
        rf"(?P<cue>\b[Gg]ive )(?P<name>{tables}){_END}",
    )
    for rule in rules:
        text = re.sub(rule, lambda found: _flag(found.groupdict(), flags), text)
    return text


def _one_of(names: Iterable[str]) -> str:
    return f"(?:{'|'.join(sorted(names, key=len, reverse=True)) or '(?!)'})"


def _flag(found: dict[str, str | None], flags: Mapping[str, str]) -> str:
    flag = (found.get("cue") or "") + flags[found["name"] or ""]
    value = found.get("value")
    if value in (None, "True"):
        return flag
    text = "none" if value == "None" else value.strip("'\"")
    return f"{flag} {shlex.quote(text)}"
