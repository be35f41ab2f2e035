"""LGConv as a layer of a PyG model, and its selection as the aggregation of a PyG convolution.

python examples/layer_in_pyg.py
"""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import GCNConv, SAGEConv

from lgcn import Graph, KLargestAggregation, LGConv, load_dataset


class Net(torch.nn.Module):
    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.embed = GCNConv(in_channels, 32)
        self.lgcl = LGConv(32, 32, k=8)
        self.sage = SAGEConv(32, num_classes, aggr=KLargestAggregation(k=4))

    def forward(self, x: Tensor, graph: Graph, edge_index: Tensor) -> Tensor:
        x = F.relu(self.embed(x, edge_index))
        # LGConv also takes edge_index; a Graph is faster, as it is checked and sorted only once.
        x = F.relu(self.lgcl(F.dropout(x, 0.5, self.training), graph))
        out: Tensor = self.sage(x, edge_index)
        return out


torch.manual_seed(0)
graph = load_dataset("digits")
data = graph.to_pyg()
model = Net(graph.num_features, graph.num_classes)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

for epoch in range(1, 61):
    model.train()
    optimizer.zero_grad()
    scores = model(data.x, graph, data.edge_index)
    loss = F.cross_entropy(scores[data.train_mask], data.y[data.train_mask])
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    if epoch % 20 == 0:
        model.eval()
        with torch.no_grad():
            hits = model(data.x, graph, data.edge_index).argmax(dim=1) == data.y
        accuracy = hits[data.val_mask].float().mean()
        print(f"epoch {epoch}: loss {loss:.3f}, validation accuracy {accuracy:.3f}")
