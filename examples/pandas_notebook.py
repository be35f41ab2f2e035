"""A notebook as a script: nodes and edges in pandas, the best settings by cross-validation.

python examples/pandas_notebook.py        (or open it as a notebook: the cells begin with # %%)
"""

# %% Two tables: members of a club, and who met whom.
import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV, train_test_split

import lgcn
from lgcn.datasets.check import check_graph

rng = np.random.default_rng(0)
club = rng.choice(["chess", "choir", "rowing"], size=300)
nodes = pd.DataFrame({
    "id": [f"member {i}" for i in range(300)],
    "age": rng.normal(35, 12, 300).round(),
    "town": rng.choice(["Ghent", "Bruges", "Leuven"], 300),
    "hobby": [f"{own} and {other}" for own, other in zip(club, rng.permutation(club), strict=True)],
    "club": pd.Series(club).where(rng.random(300) < 0.5),  # half of them are to be predicted
})  # fmt: skip
pairs = rng.integers(0, 300, (4000, 2))
met = (club[pairs[:, 0]] == club[pairs[:, 1]]) | (rng.random(4000) < 0.1)
edges = pd.DataFrame({
    "source": nodes["id"].to_numpy()[pairs[met, 0]],
    "target": nodes["id"].to_numpy()[pairs[met, 1]],
})  # fmt: skip

# %% What is in them?
graph = lgcn.from_tables(edges, nodes, label_column="club")
report = check_graph(graph)
print(
    f"{report.nodes} nodes, k by the degrees {report.suggested_k}, {len(report.warnings)} warnings"
)

# %% Cross-validation over labelled nodes: a search splits their numbers, and passes the graph on.
known = np.flatnonzero(nodes["club"].notna())
train, test = train_test_split(known, test_size=0.3, random_state=0)
search = GridSearchCV(lgcn.LGCNClassifier(max_epochs=30, random_state=0), {"k": [4, 8]}, cv=3)
search.fit(train, nodes["club"].to_numpy()[train], graph=graph)
print(f"best settings {search.best_params_}, validation {search.best_score_:.3f}")

# %% How good is it on nodes that nothing has seen?
print(f"test accuracy {search.score(test, nodes['club'].to_numpy()[test]):.3f}")

# %% Who belongs where, back in pandas.
predictions = search.best_estimator_.predictions().to_pandas()
print(nodes[["id", "club"]].merge(predictions, left_on="id", right_on="node").head())
