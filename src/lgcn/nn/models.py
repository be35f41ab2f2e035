"""The models that the training loop trains, by the name that the setting ``model`` has."""

from importlib import import_module

from torch.nn import Module

from lgcn.utils.choices import MODELS


def model_class(name: str) -> type[Module]:
    """The class; it takes (in_channels, num_classes) and settings by keyword."""
    module, _, class_name = MODELS[name].partition(":")
    found: type[Module] = getattr(import_module(module), class_name)
    return found
