"""Scores and embeddings of the nodes of shards, by a model or by an ensemble of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.nn import Module

from lgcn.errors import UsageError
from lgcn.partition import Shard
from lgcn.training.layerwise_shards import layerwise_shards
from lgcn.training.model_spec import ModelSpec
from lgcn.training.portfolio.ensemble import Average, Ensemble
from lgcn.workers import Workers


def shard_scores(
    model: Module, shards: Sequence[Shard], workers: Workers, **options: Any
) -> list[Tensor]:
    """The scores of the nodes that each shard owns.

    Args:
        model: A model that can be computed layer by layer, or an ensemble of such models.
        shards, workers, **options: See `lgcn.training.layerwise_shards.layerwise_shards`.
    """
    if not isinstance(model, Ensemble):
        return layerwise_shards(model, shards, workers, **options)
    averages = [Average(model.task) for _ in shards]
    for part in model.parts:
        check_shards_suffice(part.spec, f"{part.name} of the ensemble")
        found = layerwise_shards(part.model, shards, workers, **options)
        for average, scores in zip(averages, found, strict=True):
            average.add(scores, part.weight, part.temperature)
    return [average.scores() for average in averages]


def shard_embeddings(
    model: Module, shards: Sequence[Shard], workers: Workers, layer: int, **options: Any
) -> list[Tensor]:
    """The embeddings, after a layer, of the nodes that each shard owns; see `shard_scores`."""
    if isinstance(model, Ensemble):
        part = model.embedding_part
        check_shards_suffice(part.spec, f"{part.name} of the ensemble")
        model = part.model
    return layerwise_shards(model, shards, workers, layer=layer, **options)


def check_shards_suffice(spec: ModelSpec, what: str) -> None:
    """Raises UsageError if a model needs more than the shards of a graph.

    Args:
        spec: What the model was built for.
        what: The model, for the message.
    """
    if spec.edge_channels:
        raise UsageError(
            f"{what} reads edge features, which a graph in parts does not have. Use the graph of "
            "its training, or train with edge_features=none"
        )
    if spec.structure is not None:
        raise UsageError(
            f"{what} adds features that the edges of a whole graph give, which a graph in parts "
            "does not have. Use the graph store that it was cut from, or train with "
            "structural_features=no and positions=none"
        )
