"""What a trained model says of a graph: predictions, embeddings, and files of them."""

from typing import TYPE_CHECKING

from lgcn.utils.lazy import lazy_names

if TYPE_CHECKING:
    from lgcn.nn.whole_graph import embed, predict

__all__ = ["embed", "predict"]
__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "lgcn.nn.whole_graph"))
