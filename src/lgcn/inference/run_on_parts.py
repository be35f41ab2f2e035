"""A trained run on a graph in parts: predictions, embeddings and scores, on several processes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lgcn import __version__
from lgcn.graph import SPLITS
from lgcn.inference.embeddings import write_embeddings
from lgcn.inference.evaluation import Evaluation, evaluate_scored, scoring_of
from lgcn.inference.output_folder import check_output_folder, file_of_part
from lgcn.inference.predictions import Written, write_predictions
from lgcn.inference.shard_scores import check_shards_suffice, shard_embeddings, shard_scores
from lgcn.inference.truth import Truth
from lgcn.training.checks import check_one_direction
from lgcn.training.scored_nodes import scored_nodes
from lgcn.training.split_file import split_of
from lgcn.utils.progress import OnProgress
from lgcn.utils.sizes import parse_memory
from lgcn.workers import Workers, together

if TYPE_CHECKING:
    from lgcn.inference.trained_run import TrainedRun
    from lgcn.partition import Partition, Shard

MEMORY = "2GB"


class RunOnParts:
    """A trained run on a graph in parts. Rank r of W handles the parts r, r + W, and so on.

    All ranks make it, and call its methods, together.

    Args:
        run: The run.
        parts: The graph, see `lgcn.partition.open_partition`.
        workers: The processes. (default: this one alone)
    """

    def __init__(self, run: TrainedRun, parts: Partition, workers: Workers | None = None) -> None:
        self.run, self.parts = run, parts
        self.workers = Workers() if workers is None else workers
        check_shards_suffice(run.spec, f"the model of {run.folder}")
        check_one_direction(run.settings)
        with together(self.workers, "reading the run"):
            self.model = run.model()
        self.workers.agree(
            {
                "the version": __version__,
                "the partition": parts.header["sha256"],
                "the model": _digest(self.model),
            }
        )
        with together(self.workers, "opening the parts"):
            numbers = range(self.workers.rank, parts.num_parts, self.workers.size)
            self.shards = [parts.shard(number) for number in numbers]
            for shard in self.shards:
                run.spec.check(shard.graph)

    def write_predictions(
        self,
        path: str | Path,
        *,
        truth: bool = True,
        unlabelled_only: bool = False,
        abstain_below: float | None = None,
        memory: str | int | None = None,
        on_progress: OnProgress | None = None,
    ) -> Written:
        """Writes the predictions of each part to a Parquet file in a folder.

        Args:
            path: The folder. The file of part 0 is `part-0000.parquet`, and so on.
            truth, unlabelled_only, abstain_below: See
                `lgcn.inference.trained_run.TrainedRun.predictions`.
            memory: Memory that each process may take. (default: `"2GB"`)
            on_progress: Called after each block of rows, on the first rank. (default: none)

        Returns:
            What all ranks have written.
        """
        on_progress = on_progress if self.workers.is_first else None
        decision = self.run.decision(abstain_below)
        folder = self._folder(path, "predictions")
        written = [0, 0]
        every = self._scores(memory, on_progress)
        with together(self.workers, "writing predictions"):
            for shard, scores in zip(self.shards, every, strict=True):
                tables = decision.tables(
                    scores,
                    node_ids=_ids(shard),
                    nodes=shard.graph.unlabelled() if unlabelled_only else None,
                    truth=_truth(shard) if truth else None,
                    on_progress=on_progress,
                )
                found = write_predictions(tables, file_of_part(folder, shard.number))
                written = [written[0] + found.nodes, written[1] + found.abstained]
        return Written(*map(sum, zip(*self.workers.collect(written, "the counts"), strict=True)))

    def write_embeddings(
        self,
        path: str | Path,
        *,
        layer: int = -1,
        memory: str | int = MEMORY,
        on_progress: OnProgress | None = None,
    ) -> tuple[int, int]:
        """Writes the embeddings of each part to a Parquet file in a folder.

        Args:
            path: See `write_predictions`.
            layer: See `lgcn.inference.trained_run.TrainedRun.embed`. (default: -1, the last)
            memory, on_progress: See `write_predictions`.

        Returns:
            The number of nodes of all parts, and the width.
        """
        on_progress = on_progress if self.workers.is_first else None
        folder = self._folder(path, "embeddings")
        every = shard_embeddings(
            self.model, self.shards, self.workers, layer, memory=memory, on_progress=on_progress
        )
        with together(self.workers, "writing embeddings"):
            for shard, found in zip(self.shards, every, strict=True):
                file = file_of_part(folder, shard.number)
                write_embeddings(found, file, node_ids=_ids(shard), on_progress=on_progress)
        sizes = [list(found.shape) for found in every]
        shapes = [shape for one in self.workers.collect(sizes, "the counts") for shape in one]
        return sum(nodes for nodes, _ in shapes), shapes[0][1]

    def evaluate(
        self, *, memory: str | int | None = None, on_progress: OnProgress | None = None
    ) -> Evaluation | None:
        """The scores on the nodes of the splits of all parts, as if the graph were in one piece.

        Args:
            memory, on_progress: See `write_predictions`.

        Returns:
            See `lgcn.inference.evaluation.Evaluation`; `None` on all ranks but the first.
        """
        on_progress = on_progress if self.workers.is_first else None
        limit = parse_memory(MEMORY if memory is None else memory)
        every = self._scores(memory, on_progress)
        name = self.parts.name
        found = scored_nodes(self.shards, every, self.workers, memory=limit // 2, name=name)
        if found is None:
            return None
        run = self.run
        return evaluate_scored([found], name, scoring_of(run), run.interval)

    def _scores(self, memory: str | int | None, on_progress: OnProgress | None) -> list[Tensor]:
        memory = MEMORY if memory is None else memory
        return shard_scores(
            self.model, self.shards, self.workers, memory=memory, on_progress=on_progress
        )

    def _folder(self, path: str | Path, what: str) -> Path:
        with together(self.workers, "the check of the folder"):
            folder = check_output_folder(path, what, self.parts.num_parts)
        return folder


def _digest(model: torch.nn.Module) -> str:
    """A checksum of the weights."""
    digest = hashlib.sha256()
    for name, value in model.state_dict().items():
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _ids(shard: Shard) -> Callable[[int, int], Any]:
    """Gives the ids of nodes; their numbers in the whole graph if they have none."""
    if shard.node_ids is not None:
        return shard.node_ids
    n_id = shard.graph.n_id
    assert n_id is not None
    return lambda start, stop: n_id[start:stop].numpy()


def _truth(shard: Shard) -> Truth:
    has_split = any(shard.graph.mask(name) is not None for name in SPLITS)
    return Truth.of(shard.graph, split_of(shard.graph) if has_split else None)
