"""Turns the names of Python arguments in the library's errors and notes into flags."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import typer
from typer.core import TyperCommand

from lgcn.errors import Interrupted, LGCNError

# A name in quotes, in a path or in a longer name belongs to the user.
_START, _END = r"(?<![\w'\"/.=-])", r"(?![\w'\"/])"
_VALUE = r"'[^']*'|\"[^\"]*\"|[\w.]*\w"
# Names that are also English words count as names only before "must", in pairs and after cues.
_WORDS = (
    "val",
    "test",
    "decimal",
    "delimiter",
    "encoding",
    "memory",
    "seed",
    "layer",
    "features",
    "root",
    "task",
    "fold",
    "sample",
    "path",
    "target",
    "against",
    *("host", "port", "queue", "timeout", "threads", "address"),
    *("homophily", "imbalance", "noise", "locality", "skew"),
    *("parts", "method"),
)
_TABLES = ("edges", "nodes")  # only after "give" and before a colon
_CUES = "Give|give|Raise|raise|Omit|without"
# What follows the name of a setting that the message speaks of. In lists of settings it stays.
_VERBS = "must|gives|names|needs|wants"
# Arguments of the library whose flag has another name.
_OTHER_NAMES = MappingProxyType({"sample_weight_column": "sample_weight"})
# Settings that advice of other commands is about, such as "train with positions=none".
_OF_TRAIN = ("metric", "class_weight", "structural_features", "positions", "time_limit")
_SWITCHES = ("structural_features",)  # yes and no are --NAME and --no-NAME

# A command line that cannot be read; typer has a name only for a kind of it.
UsageProblem: Any = typer.BadParameter.__base__

_flags: ContextVar[Mapping[str, str]] = ContextVar("flags", default=MappingProxyType({}))


class Command(TyperCommand):
    """A command whose errors name its flags, and which Ctrl-C ends with one line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except UsageProblem as error:
            wrong = getattr(error, "option_name", None) or ""
            if re.fullmatch("-[^-]", wrong) and any(one.nargs == -1 for one in self.params):
                text = next((one for one in given if one.startswith(wrong)), wrong)
                error.message += f". If it is no option but an id, put -- before it: -- {text}"
            raise

    def invoke(self, ctx: Any) -> Any:
        flags = {
            name: flag
            for parameter in self.params
            for flag in parameter.opts[:1]
            if flag.startswith("--")
            for name in (
                parameter.name,
                flag.removeprefix("--").replace("-", "_"),
                _OTHER_NAMES.get(parameter.name or ""),
            )
            if name
        }
        if "set_" not in flags:
            flags = {name: "--" + name.replace("_", "-") for name in _OF_TRAIN} | flags
        with flag_names(**flags):
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                raise Interrupted("stopped") from None


@contextmanager
def flag_names(**flags: str) -> Iterator[None]:
    """Within the block, errors and notes name these flags in place of arguments."""
    token = _flags.set({**_flags.get(), **flags})
    try:
        yield
    except LGCNError as error:
        error.args = (in_flags(str(error)), *error.args[1:])
        raise
    finally:
        _flags.reset(token)


def in_flags(text: str) -> str:
    """A message of the library with flags in place of arguments.

    `unknown_nodes='drop'` becomes `--unknown-nodes drop`, `edges=None` `--edges none`,
    `overwrite=True` `--overwrite`, `header=False` `--no-header`, and `nodes=` `--nodes`. Settings
    become flags if a message gives their value or says what they must be, but not in lists, which
    hold names for `--set`.
    """
    every = flags = _flags.get()
    settings: set[str] = set()
    if "set_" in flags:
        from lgcn.training.settings import TOP, flat_names

        settings = {*TOP, *flat_names()} & set(every)
        flags = {name: flags[name] for name in flags if name not in settings}
    words = _one_of(name for name in flags if name in _WORDS)
    tables = _one_of(name for name in flags if name in _TABLES)
    rules = (
        rf"{_START}(?P<name>{_one_of(every)})=(?P<value>{_VALUE})",
        rf"{_START}(?P<name>{_one_of(every)})=(?=[\s,.:;)]|$)",
        rf"{_START}(?P<name>{_one_of(name for name in flags if '_' in name)}){_END}",
        rf"{_START}(?P<name>{words})(?= (?:and|\+) {words}\b)",
        rf"(?P<cue>--[\w-]+ (?:and|\+) )(?P<name>{words}){_END}",
        rf"{_START}(?P<name>{words})(?= must\b)",
        rf"{_START}(?P<name>{_one_of(settings)})(?= (?:{_VERBS})\b)",
        rf"^(?P<name>{tables})(?=: )",
        rf"(?P<cue>\b(?:{_CUES}) )(?P<name>{words}){_END}",
        rf"(?P<cue>\b[Gg]ive )(?P<name>{tables}){_END}",
    )
    for rule in rules:
        text = re.sub(rule, lambda found: _flag(found.groupdict(), every), text)
    return text


def _one_of(names: Iterable[str]) -> str:
    return f"(?:{'|'.join(sorted(names, key=len, reverse=True)) or '(?!)'})"


def _flag(found: dict[str, str | None], flags: Mapping[str, str]) -> str:
    flag = (found.get("cue") or "") + flags[found["name"] or ""]
    value = found.get("value")
    switch = found["name"] in _SWITCHES
    if value in (None, "True") or (switch and value == "yes"):
        return flag
    if value == "False" or (switch and value == "no"):
        return flag.replace("--", "--no-", 1)
    text = "none" if value == "None" else value.strip("'\"")
    return f"{flag} {shlex.quote(text)}"
