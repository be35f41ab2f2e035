"""What a trained model says about a graph: predictions, embeddings, and files of them."""

from typing import TYPE_CHECKING

from lgcn.utils.lazy import lazy_names

if TYPE_CHECKING:
    from lgcn.inference.trained_run import TrainedRun, load_run
    from lgcn.nn.whole_graph import embed, predict

__all__ = ["TrainedRun", "embed", "load_run", "predict"]

# Imported when first used: a trained run and new data are checked before torch is imported.
_HOME = {
    "TrainedRun": "lgcn.inference.trained_run",
    "embed": "lgcn.nn.whole_graph",
    "load_run": "lgcn.inference.trained_run",
    "predict": "lgcn.nn.whole_graph",
}
__getattr__ = lazy_names(__name__, _HOME)
