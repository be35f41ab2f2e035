"""All settings of a run, from files, flags or keyword arguments.

`lgcn.training.groups` lists every setting with its type, limits, description and default. A
setting also has a flat name, which omits the group (``k`` for ``model.k``); ``model`` is the flat
name of ``model.name``.
"""

import tomllib
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, PrivateAttr, model_validator

from lgcn.errors import UsageError, did_you_mean
from lgcn.training.groups import (
    EvaluationSettings,
    Group,
    HardwareSettings,
    Int,
    LGCNSettings,
    ModelSettings,
    OptimisationSettings,
    SamplingSettings,
    StructuralFeatures,
)
from lgcn.training.models import find_model, model_names, network_class
from lgcn.training.presets import depends_on_labels, preset_values
from lgcn.utils.durations import parse_duration

if TYPE_CHECKING:
    from torch.nn import Module

    from lgcn.graph import Graph
    from lgcn.training.choose import Known

# The class of the group "model" depends on the model: see groups_of.
GROUPS: dict[str, type[Group]] = {
    "model": ModelSettings,
    "sampling": SamplingSettings,
    "optimisation": OptimisationSettings,
    "evaluation": EvaluationSettings,
    "hardware": HardwareSettings,
}


def _as_duration(value: Any) -> Any:
    if isinstance(value, str | int | float) and str(value).lower() != "none":
        parse_duration(value, "time_limit")  # raises UsageError
        return value if isinstance(value, str) else f"{value}s"
    return value


class Settings(Group):
    """The settings of a run, in groups. Make them with `create`.

    Example::

        settings = Settings.create(dataset="cora", k=16, lr=0.05)
        settings.model.k, settings.optimisation.lr
    """

    dataset: str = Field("digits", description="data set, by name or path")
    dataset_options: dict[str, Any] = Field(
        default_factory=dict, description="options of the data set's loader"
    )
    preset: str = Field("default", description="a preset; explicit settings override it")
    labels: Literal["auto", "few", "many"] = Field(
        "auto",
        description="whether the preset's settings for few or many labels are used (auto: many "
        "from 400 training nodes per class on, and if neighbours are seldom of one class; "
        "lgcn train tries both on small graphs and keeps the better)",
    )
    structural_features: StructuralFeatures = Field(
        "auto",
        description="whether degrees, clustering and other numbers that the edges give are added "
        "to the features (auto: only if the graph has no features; degree: then the degree alone)",
    )
    positions: Literal["auto", "none", "spectral", "learnt"] = Field(
        "auto",
        description="coordinates of nodes that are added to the features; the model can then "
        "predict no other graph (auto: only if the graph has no features)",
    )
    seed: Int = Field(0, ge=0, description="seed of weights, dropout and sub-graphs")
    time_limit: Annotated[str | None, BeforeValidator(_as_duration)] = Field(
        None,
        description="time for a portfolio of trainings and their average, such as 90s, 10m or 2h "
        "(none: one training)",
    )
    max_trials: Int | None = Field(
        None,
        ge=1,
        description="trainings of the portfolio at most; without time_limit, the result does not "
        "depend on the speed of the machine",
    )
    model: ModelSettings = LGCNSettings()
    sampling: SamplingSettings = SamplingSettings()
    optimisation: OptimisationSettings = OptimisationSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    hardware: HardwareSettings = HardwareSettings()

    # Flat names of the settings that were given; no preset overrides them.
    _given: frozenset[str] = PrivateAttr(frozenset())

    @classmethod
    def create(cls, **given: Any) -> "Settings":
        """The given settings on top of the preset's, on top of the defaults; all are checked.

        The default preset depends on the model. That of the LGCN is ``"default"``.

        Args:
            given: Settings by flat name (``k=16``, ``model="lgcn"``) or in groups
                (``model={"k": 16}``).
        """
        flat = flatten(given)
        preset = flat.get("preset")
        if preset is None:
            preset = find_model(flat.get("model", "lgcn")).preset
        dataset = flat.get("dataset", cls.model_fields["dataset"].default)
        options = flat.get("dataset_options")
        if dataset == "graphs" and isinstance(options, Mapping):
            # Presets know a set of whole graphs by its name, as `lgcn train --graphs NAME` does.
            dataset = options.get("path", dataset)
        values = preset_values(preset, dataset, flat.get("labels"))
        model = flat.get("model", values.get("model", "lgcn"))
        check_names(flat, model)
        if model != values.get("model", model):  # of its network, what all models share
            own = {name for name, (group, _) in flat_names(model).items() if group == "model"}
            values = {
                name: value
                for name, value in values.items()
                if name not in own or name in ModelSettings.model_fields
            }
        values = {**values, **flat, "preset": preset, "model": model}
        return cls._of(values, frozenset(flat))

    @classmethod
    def _of(cls, values: Mapping[str, Any], given: frozenset[str]) -> "Settings":
        """Settings by flat names; names that the model does not have are ignored."""
        parts: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
        for name, (group, field) in flat_names(values["model"]).items():
            if name in values:
                parts[group][field] = values[name]
        groups = groups_of(values["model"])
        built = {group: groups[group].build(inside) for group, inside in parts.items()}
        top = {name: values[name] for name in TOP if name in values}
        settings = cls.build(top | built)
        settings._given = given
        return settings

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Refuses settings that contradict each other."""
        sampling = self.sampling
        n_init, max_nodes = sampling.n_init, sampling.max_nodes
        if n_init and max_nodes and n_init > max_nodes:
            raise UsageError(f"n_init must be at most max_nodes ({max_nodes}), got {n_init}")
        if sampling.sampler != "bfs" and sampling.start_nodes != "uniform":
            raise UsageError(
                f"start_nodes={sampling.start_nodes} needs sampler=bfs, "
                f"got sampler={sampling.sampler}"
            )
        if sampling.sampler in ("clusters", "walks") and max_nodes is None:
            raise UsageError(f"sampler={sampling.sampler} needs max_nodes, got none")
        agreement, views = self.optimisation.agreement, self.optimisation.views
        if agreement and views == 1:
            raise UsageError(f"agreement={agreement} needs at least 2 views, got views=1")
        return self

    @classmethod
    def from_toml(cls, path: str | Path) -> dict[str, Any]:
        """The settings in a TOML file by flat name, as arguments for ``create``."""
        try:
            with Path(path).open("rb") as file:
                read = tomllib.load(file)
        except OSError as error:
            raise UsageError(f"cannot read the config file {path}: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"the config file {path} is not valid TOML: {error}") from error
        try:
            flat = flatten(read)
            # Which model it will be is not known yet: another file or flag may name it.
            known = [*TOP, *(name for model in model_names() for name in flat_names(model))]
            for name in flat:
                if name not in known:
                    raise UsageError(f"unknown setting {name!r}; {did_you_mean(name, known)}")
        except UsageError as error:
            raise UsageError(f"the config file {path}: {error}") from error
        return flat

    @property
    def given(self) -> frozenset[str]:
        """Flat names of the settings that were given. Comparisons ignore them."""
        return self._given

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, Any]:
        """The settings in groups, as JSON can hold them."""
        groups = {name: getattr(self, name).model_dump(mode="json") for name in GROUPS}
        return {**{name: getattr(self, name) for name in TOP}, **groups}

    def flat(self) -> dict[str, Any]:
        """The settings by flat name, as JSON can hold them."""
        return flatten(self.to_dict())

    def replace(self, **changes: Any) -> "Settings":
        """A copy with some settings changed. The changes count as given."""
        flat = flatten(changes)
        check_names(flat, flat.get("model", self.model.name))
        return self._of({**self.flat(), **flat}, self._given | flat.keys())

    def resolve(self, graph: "Graph | Known", *, may_be_whole: bool = True) -> "Settings":
        """A copy in which all choices that depend on the graph are made.

        - ``labels="auto"``: the preset's settings for many labels replace those for few labels if
          classes have at least 400 training nodes on average, or if neighbours are seldom of one
          class. Given settings stay.
        - ``k=None`` becomes a number chosen by the degrees (``lgcn.graph.statistics.suggest_k``).
        - ``input_scale=None`` becomes one over the typical length of a node's features, with those
          that ``structural_features`` and ``positions`` add.
        - ``training="auto"`` becomes ``"whole"``, or ``"subgraph"`` if the whole graph would need
          too much memory or work on the device. ``subgraphs_per_epoch`` then limits the work of
          all epochs, and ``evaluate_every`` that of scoring all nodes.
        - ``evaluate_on="auto"`` becomes ``"graph"`` if the nodes of the largest graph, times
          k + 1, are at most four million, else ``"sampled"``.

        Args:
            graph: The graph, or what is known of it.
            may_be_whole: Whether one process can train on the whole graph. (default: ``True``)
        """
        from lgcn.training.choose import EVALUATED_VALUES, Known, training_choice

        known = graph if isinstance(graph, Known) else Known.of(graph)
        settings = self._for_labels(known)
        model = settings.model
        if isinstance(model, LGCNSettings):
            if model.cnn in ("shared", "depthwise") and settings._differs("lgcl_channels"):
                warnings.warn(
                    f"lgcl_channels={model.lgcl_channels} has no effect with cnn={model.cnn}, "
                    "whose LGCLs add as many features as they are given; use cnn=single or "
                    "cnn=double",
                    stacklevel=3,
                )
            if model.k is None:
                settings = settings._with(k=known.suggested_k())
        if model.input_scale is None:
            settings = settings._with(input_scale=1 / known.feature_length(self))
        if settings.sampling.training == "auto":
            chosen = training_choice(known, settings, may_be_whole=may_be_whole)
            settings = settings._with(**chosen)
        if settings.evaluation.evaluate_on == "auto":
            values = known.largest * settings.model.values_per_feature
            whole = values <= EVALUATED_VALUES
            settings = settings._with(evaluate_on="graph" if whole else "sampled")
        return settings

    def _for_labels(self, known: "Known") -> "Settings":
        if self.labels != "auto" or not depends_on_labels(self.preset, self.dataset):
            return self
        if not known.wants_many():
            return self
        flat = self.flat()
        values = preset_values(self.preset, self.dataset, "many")
        many = self._of({**values, **{n: flat[n] for n in ("preset", "model")}}, self._given)
        given = {name: flat[name] for name in self._given if name != "model"}
        return many._with(**{**given, "labels": "many"})

    def _differs(self, name: str) -> bool:
        """Whether the user gave another value than the preset's. A resumed run gives them all."""
        if name not in self._given:
            return False
        usual = Settings.create(dataset=self.dataset, preset=self.preset, labels=self.labels)
        return bool(self.flat()[name] != usual.flat().get(name))

    def _with(self, **changes: Any) -> "Settings":
        """A copy with other values, which are not checked and do not count as given."""
        update: dict[str, Any] = {name: changes[name] for name in TOP if name in changes}
        for group in GROUPS:
            part = getattr(self, group)
            inside = {key: changes[key] for key in type(part).model_fields if key in changes}
            if inside:
                update[group] = part.model_copy(update=inside)
        return self.model_copy(update=update)

    def build_model(self, in_channels: int, num_classes: int, edge_channels: int = 0) -> "Module":
        """A network with new weights."""
        options = self.model.options()
        if edge_channels:
            options["edge_channels"] = edge_channels
        return network_class(self.model.name)(in_channels, num_classes, **options)


TOP: tuple[str, ...] = tuple(name for name in Settings.model_fields if name not in GROUPS)


def groups_of(model: object = "lgcn") -> dict[str, type[Group]]:
    """The classes of the groups. That of ``"model"`` depends on the model."""
    return {**GROUPS, "model": find_model(model).settings}


def flat_names(model: object = "lgcn") -> dict[str, tuple[str, str]]:
    """The group and field of each flat name, for a model. Settings outside of groups are not in."""
    return {
        "model" if (group, field) == ("model", "name") else field: (group, field)
        for group, cls in groups_of(model).items()
        for field in cls.model_fields
    }


def check_names(names: Iterable[str], model: object) -> None:
    """Raises UsageError if a name is no setting of the model."""
    known = [*TOP, *flat_names(model)]
    for name in names:
        if name not in known:
            of_model = "" if model == "lgcn" else f" of model={model}"
            others = [f"model={one}" for one in model_names() if name in flat_names(one)]
            hint = f"it is one of {' and '.join(others)}" if others else did_you_mean(name, known)
            raise UsageError(f"unknown setting {name!r}{of_model}; {hint}")


def flatten(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Flat or grouped settings by flat name. Raises UsageError if a name occurs twice."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        inner = _of_group(key, value) if key in GROUPS else {key: value}
        for name in inner:
            if name in flat:
                raise UsageError(f"the setting {name!r} is given twice")
        flat |= inner
    return flat


def _of_group(group: str, value: Any) -> dict[str, Any]:
    if isinstance(value, Group):
        value = value.model_dump()
    if not isinstance(value, Mapping):
        if group == "model":
            return {"model": value}
        raise UsageError(f"{group} is a group of settings and must be a table, got {value!r:.80}")
    if group == "model":  # other names are checked once the model is known
        for name in value:
            for other in GROUPS:
                if other != "model" and name in GROUPS[other].model_fields:
                    raise UsageError(f"unknown setting 'model.{name}'; use {other}.{name}")
        return {"model" if name == "name" else name: value[name] for name in value}
    for name in value:
        if name not in GROUPS[group].model_fields:
            hint = did_you_mean(name, GROUPS[group].model_fields)
            raise UsageError(f"unknown setting {f'{group}.{name}'!r}; {hint}")
    return dict(value)


def parse_setting(text: str) -> tuple[str, Any]:
    """Parses ``key=value`` from the command line like a line of a TOML file.

    ``none`` means no value, and what is no TOML value is a string. The key may be ``group.key``, or
    ``table.key`` for one key of a table.
    """
    key, separator, value = text.partition("=")
    key = key.strip()
    if not separator or not key:
        raise UsageError(f"--set wants key=value, got {text!r}")
    parsed: Any = value.strip()
    if parsed.lower() in ("none", "null"):
        parsed = None
    else:
        try:
            parsed = tomllib.loads(f"value = {parsed}")["value"]
        except tomllib.TOMLDecodeError:
            parsed = {"True": True, "False": False}.get(parsed, parsed)
    return key, parsed


def merge_settings(texts: Iterable[str], below: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Several ``key=value`` strings as settings by flat name. Later ones override earlier.

    Args:
        texts: The strings.
        below: Settings that they override. (default: none)
    """
    settings = dict(below or {})
    for text in texts:
        key, value = parse_setting(text)
        table, dot, inner = key.partition(".")
        if not dot:
            settings |= flatten({key: value})
        elif table in GROUPS:
            settings |= flatten({table: {inner: value}})
        elif table == "dataset_options":
            before = settings.get(table, {})
            if not isinstance(before, Mapping):
                raise UsageError(f"--set {text}: {table} is {before!r}, not a table")
            settings[table] = {**before, inner: value}
        else:
            known = [f"{group}.{name}" for group, name in flat_names().values()]
            hint = did_you_mean(key, known)
            if hint.startswith("known"):
                hint = did_you_mean(table, GROUPS)
            raise UsageError(f"unknown setting {key!r}; {hint}")
    return settings
