"""What a trained model says of a graph: predictions, embeddings, and files of them."""

from lgcn.nn.whole_graph import embed, predict

__all__ = ["embed", "predict"]
