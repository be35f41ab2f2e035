"""The models that can be trained, by name.

A model is a `torch.nn.Module` with a class of settings. Other packages add theirs::

    register_model("mine", "my_package.network:Mine", MySettings, preset="mine")

The network's class takes (in_channels, num_classes) and the fields of its settings by keyword. Its
``forward`` takes (x, graph) and returns one row of scores per node, or per graph if the model is
``for_graphs``. It also has

- ``first_layer``, the layer that ``decay_layers="first"`` applies L2 to;
- ``can_capture``, whether a training step launches the same kernels on the same memory each time,
  so that a CUDA graph can replay it. (default: ``False``)
- ``can_pad``, whether nodes without neighbours and labels, which pad a sub-graph to a fixed size,
  change nothing for the other nodes in a training step. A CUDA graph then also replays steps on
  sub-graphs that change. Batch norm does not see them if it is `lgcn.nn.batch_norm.BatchNorm`, and
  only kernels that go by rows may read sparse features. (default: ``False``)
- ``take_extra_loss``, a method for networks with a loss beside that of their scores. It returns the
  extra loss of the latest forward pass in training mode, a scalar, and forgets it. A training step
  calls it after each forward pass, and adds the mean over the views to its loss. Evaluation does
  not call it. (default: there is none)
"""

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from lgcn.errors import UsageError, did_you_mean
from lgcn.training.groups import (
    BoostingSettings,
    EvaluationSettings,
    GraphLGCNSettings,
    HardwareSettings,
    LGCNSettings,
    ModelSettings,
    OptimisationSettings,
    ResidualSettings,
    SamplingSettings,
)

if TYPE_CHECKING:
    from torch.nn import Module


class UnknownModel(UsageError):
    """No model has that name."""


class Model(NamedTuple):
    """Where a model's class is, the class of its settings, and its default preset.

    With ``for_graphs``, it predicts whole graphs (`lgcn.graph.GraphSet`), else nodes.
    """

    network: str
    settings: type[ModelSettings]
    preset: str
    for_graphs: bool = False


_models: dict[str, Model] = {
    "lgcn": Model("lgcn.nn.lgcn:LGCN", LGCNSettings, "default"),
    "residual": Model("lgcn.nn.residual:ResidualLGCN", ResidualSettings, "residual"),
    "graph_lgcn": Model(
        "lgcn.nn.graph_lgcn:GraphLGCN", GraphLGCNSettings, "graphs", for_graphs=True
    ),
    "boosting": Model("lgcn.nn.boosted_trees:BoostedTrees", BoostingSettings, "boosting"),
}
_OWN = len(_models)  # models that no other package has added


def register_model(
    name: str,
    network: str,
    settings: type[ModelSettings],
    *,
    preset: str,
    for_graphs: bool = False,
) -> None:
    """Adds a model, which ``model=NAME`` then selects in the settings.

    Args:
        name: Its name.
        network: Where its class is, as ``module:Class``. It is imported when a model is built.
        settings: The class of its settings, a subclass of `ModelSettings`. Its module should
            not import torch, so that a wrong setting is reported at once. Its fields must not
            have names of other settings, since `--set NAME=VALUE` names no group.
        preset: Its default preset.
        for_graphs: Whether it predicts whole graphs instead of nodes. (default: ``False``)
    """
    others = (SamplingSettings, OptimisationSettings, EvaluationSettings, HardwareSettings)
    for field in settings.model_fields:
        if any(field in group.model_fields for group in others):
            raise ValueError(f"settings must not have a field {field}: training has that setting")
    _models[name] = Model(network, settings, preset, for_graphs)


def model_names() -> list[str]:
    return list(_models)


def find_model(name: object) -> Model:
    """The model of that name; raises UnknownModel if there is none."""
    if not isinstance(name, str) or name not in _models:
        hint = did_you_mean(name, _models)
        raise UnknownModel(f"unknown model {name!r}; {hint}{and_the_papers()}")
    return _models[name]


def network_class(name: str) -> "type[Module]":
    """The class of a model."""
    module, _, class_name = find_model(name).network.partition(":")
    found: type[Module] = getattr(import_module(module), class_name)
    return found


def and_the_papers() -> str:
    """A hint for unknown names if no package has added models yet."""
    if len(_models) > _OWN:
        return ""
    return " (models and presets of the paper's comparison need `import lgcn.paper`)"
