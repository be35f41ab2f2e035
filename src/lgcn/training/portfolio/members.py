"""The settings that a portfolio tries, in order of promise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lgcn.training.presets import depends_on_labels, preset_values
from lgcn.training.settings import TOP, Settings, flat_names

if TYPE_CHECKING:
    from lgcn.graph import Graph

# Settings of the whole portfolio, which no member has.
OF_PORTFOLIO = ("preset", "labels", "time_limit", "max_trials")


@dataclass(frozen=True)
class Member:
    """Settings to train.

    Args:
        name: Its name, which is also that of its folder.
        family: What its network is made of. The search varies the best member of each family.
        base: The preset it starts from: ``"few"`` and ``"many"`` are the default one's settings for
            few and many labels.
        changes: Settings that differ from the preset's, by flat name.
    """

    name: str
    family: str
    base: str
    changes: Mapping[str, Any] = field(default_factory=dict)

    def settings(self, asked: Settings) -> Settings | None:
        """The settings of the member; ``None`` if the user asked for another model.

        Args:
            asked: The settings of the portfolio. What the user gave overrides the member's.
        """
        if self.base == "asked":
            return asked.replace(time_limit=None, max_trials=None)
        preset = "default" if self.base in ("few", "many") else self.base
        values = {**preset_values(preset, "tables", self.base), **self.changes}
        flat = asked.flat()
        if "model" in asked.given and flat["model"] != values["model"]:
            return None
        known = {*TOP, *flat_names(values["model"])}
        if not set(values) <= known:
            return None
        kept = {
            name: flat[name]
            for name in (asked.given | {"dataset", "dataset_options", "seed"})
            if name in known and name not in OF_PORTFOLIO
        }
        kept.pop("model", None)
        if values.get("cnn") in ("shared", "depthwise"):  # has no effect there
            values.pop("lgcl_channels", None)
            kept.pop("lgcl_channels", None)
        labels = self.base if preset == "default" else "auto"
        return Settings.create(**{**values, **kept, "preset": preset, "labels": labels})


def _gcn(**changes: Any) -> dict[str, Any]:
    """A network of two GCN layers, without LGCLs."""
    return {
        "num_layers": 0,
        "embedding": "gcn",
        "classifier": "normalized",
        "hidden_channels": 64,
        "dropout": 0.5,
        "input_dropout": 0.5,
        "node_dropout": 0.0,
        "views": 1,
        "agreement": 0.0,
        "lr": 0.01,
        "weight_decay": 0.0005,
        "max_epochs": 500,
        **changes,
    }


def _residual(aggregate: str, layers: int, **changes: Any) -> dict[str, Any]:
    return {"aggregate": aggregate, "num_layers": layers, **changes}


def _light(aggregate: str, **changes: Any) -> dict[str, Any]:
    """One layer without norm and with strong dropout, for few labels."""
    return {
        **_residual(aggregate, 1, hidden_channels=64, norm="none"),
        "dropout": 0.6,
        "input_dropout": 0.5,
        "lr": 0.01,
        "weight_decay": 0.001,
        "max_epochs": 500,
        "patience": 100,
        **changes,
    }


FEW = Member("few", "few", "few")
MANY = Member("many", "many", "many")
NO_LGCL = Member("no-lgcl", "no-lgcl", "few", {"num_layers": 0})
GCN = Member("gcn", "gcn", "few", _gcn())
RESIDUAL_GCN = Member(
    "residual-gcn",
    "residual-gcn",
    "residual",
    _residual("gcn", 4, hidden_channels=128, dropout=0.5),
)
RESIDUAL_MEAN = Member(
    "residual-mean",
    "residual-mean",
    "residual",
    _residual("mean", 4, hidden_channels=128, dropout=0.4),
)
ATTENTION = Member(
    "residual-attention",
    "residual-attention",
    "residual",
    _residual("attention", 3, hidden_channels=128, dropout=0.4),
)
DEEP_GCN = Member(
    "deep-gcn",
    "residual-gcn",
    "residual",
    _residual("gcn", 12, lr=0.01, max_epochs=2000, patience=300),
)
DEEP_LGCL = Member(
    "deep-lgcl",
    "residual-lgcl",
    "residual",
    _residual("lgcl", 12, lr=0.01, weight_decay=0.0001, dropout=0.1),
)
# On many features a step takes long: last among equals.
PROPAGATED = Member("propagated", "propagated", "propagated")
MLP = Member(
    "mlp", "mlp", "residual", _residual("none", 2, hidden_channels=256, dropout=0.5, patience=100)
)
BOOSTING = Member("boosting", "boosting", "boosting")
WIDE = Member(
    "wide-gcn",
    "residual-gcn",
    "residual",
    _residual("gcn", 3, hidden_channels=512, norm="layer", dropout=0.5, lr=0.001),
)
WIDE_MEAN = Member(
    "wide-mean",
    "residual-mean",
    "residual",
    _residual("mean", 2, hidden_channels=512, norm="layer", dropout=0.5, lr=0.001),
)
LIGHT_MEAN = Member("light-mean", "light-mean", "residual", _light("mean"))
LIGHT_ATTENTION = Member(
    "light-attention",
    "light-attention",
    "residual",
    _light("attention", heads=8, adj_dropout=0.3, lr=0.005),
)
LIGHT_MLP = Member("light-mlp", "mlp", "residual", _light("none", weight_decay=0.005))
SLOWER = Member(
    "few-slower",
    "few",
    "few",
    {
        "hops": 10,
        "node_dropout": 0.2,
        "input_dropout": 0.2,
        "agreement": 1.5,
        "lr": 0.005,
        "weight_decay": 0.0005,
        "max_epochs": 500,
    },
)


def _structural(member: Member) -> Member:
    changes = {**member.changes, "structural_features": "yes"}
    return Member(f"{member.name}-structural", member.family, member.base, changes)


# Three orders: few labels, many labels, and neighbours that are seldom of one class.
WITH_FEW = (
    *(FEW, NO_LGCL, MANY, GCN, LIGHT_MEAN, LIGHT_ATTENTION, SLOWER, BOOSTING, RESIDUAL_GCN),
    *(LIGHT_MLP, RESIDUAL_MEAN, PROPAGATED, ATTENTION, _structural(BOOSTING), _structural(FEW)),
    *(MLP, WIDE, DEEP_GCN, DEEP_LGCL),
)
WITH_MANY = (
    *(MANY, FEW, RESIDUAL_MEAN, RESIDUAL_GCN, BOOSTING, ATTENTION, NO_LGCL, MLP),
    *(_structural(RESIDUAL_MEAN), WIDE_MEAN, WIDE, DEEP_GCN, _structural(BOOSTING), DEEP_LGCL),
    *(GCN, _structural(MANY), LIGHT_MEAN, LIGHT_ATTENTION),
)
DISAGREEING = (
    *(MANY, DEEP_GCN, DEEP_LGCL, RESIDUAL_MEAN, _structural(BOOSTING), ATTENTION, FEW, BOOSTING),
    *(_structural(RESIDUAL_MEAN), GCN, MLP, RESIDUAL_GCN, NO_LGCL, _structural(MANY), LIGHT_MEAN),
    *(LIGHT_MLP, WIDE_MEAN, LIGHT_ATTENTION, WIDE),
)
# Graphs in stores, which may not fit in memory. First networks that need few passes over the
# neighbours. Trees are left out, since they need all features at once.
IN_STORE = (
    Member("asked", "asked", "asked"),
    Member("mean", "residual-mean", "residual", _residual("mean", 2, hidden_channels=128)),
    Member("two-lgcls", "residual-lgcl", "residual", _residual("lgcl", 2)),
    FEW,
    MANY,
    Member("mlp", "mlp", "residual", _residual("none", 2, hidden_channels=256, dropout=0.5)),
)


def members(settings: Settings, graph: Graph) -> Iterator[tuple[Member, Settings]]:
    """The members of a portfolio with their settings, without repetitions.

    Args:
        settings: Those of the portfolio.
        graph: The graph to train on.
    """
    from lgcn.graph.statistics import labels_per_class
    from lgcn.training.choose import MANY_LABELS, neighbours_agree

    if settings.dataset == "store":
        chosen: tuple[Member, ...] = IN_STORE
    elif not neighbours_agree(graph):
        chosen = DISAGREEING
    else:
        chosen = WITH_MANY if labels_per_class(graph) >= MANY_LABELS else WITH_FEW
    if settings.dataset != "store" and not depends_on_labels(settings.preset, settings.dataset):
        chosen = (Member("preset", "preset", "asked"), *chosen)  # settings for this very graph
    yield from distinct(chosen, settings)


def distinct(chosen: tuple[Member, ...], asked: Settings) -> Iterator[tuple[Member, Settings]]:
    """Members with their settings; of equal settings, only the first."""
    seen: list[Settings] = []
    for member in chosen:
        own = member.settings(asked)
        if own is not None and own not in seen:
            seen.append(own)
            yield member, own
