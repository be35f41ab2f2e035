"""Classify graphs of your own, here NetworkX graphs, and predict new ones.

python examples/own_graphs.py

The graphs are friendships in invented school classes: in some everybody is in one of a few circles
of friends, in others friendships are spread at random. Pupils have no features; the network learns
from degrees, triangles and other numbers that the edges give.
"""

import networkx as nx
import numpy as np
from sklearn.model_selection import cross_val_score

import lgcn


def school_class(kind: str, seed: int) -> nx.Graph:
    rng = np.random.default_rng(seed)
    pupils = int(rng.integers(18, 30))
    if kind == "circles":
        graph = nx.planted_partition_graph(3, pupils // 3, 0.5, 0.02, seed=seed)
        for _, attributes in graph.nodes(data=True):
            attributes.clear()  # NetworkX writes down everybody's circle, which would be the answer
        return graph
    return nx.gnp_random_graph(pupils, 0.17, seed=seed)


kinds = ["circles", "mixed"] * 40
graphs = [school_class(kind, seed) for seed, kind in enumerate(kinds)]

model = lgcn.GraphClassifier(max_epochs=40, random_state=0)
scores = cross_val_score(model, graphs, kinds, cv=4)
print(f"accuracy {scores.mean():.3f} ± {scores.std():.3f} (4 folds)")

model.fit(graphs, kinds)
new = [school_class(kind, seed) for seed, kind in enumerate(["circles", "mixed", "mixed"], 1000)]
print(model.predict(new), model.predict_proba(new).round(2))
