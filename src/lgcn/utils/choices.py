"""Names that an option can take, where the settings and the code that acts on them need one list.

Nothing here imports torch, so that a wrong name is reported at once.
"""

from typing import Literal, get_args

# What is predicted for a node: its class, several labels, or a number.
Task = Literal["classification", "multilabel", "regression"]
Unit = Literal["node", "graph"]  # what a model predicts
# All but "none" are functions of torch.nn.functional.
Activation = Literal["none", "relu", "elu", "gelu"]
ACTIVATIONS: tuple[str, ...] = get_args(Activation)
# How often a node starts a sub-graph.
StartNodes = Literal["uniform", "balanced", "degree"]
START_NODES: tuple[str, ...] = get_args(StartNodes)

ScoredNodes = Literal["all", "start", "complete"]
SCORED_NODES: tuple[str, ...] = get_args(ScoredNodes)

# From the nodes of a graph to the graph; several are joined with "+".
Readout = Literal["sum", "mean", "max", "k_largest", "sort"]
READOUTS: tuple[Readout, ...] = get_args(Readout)


def readout_names(text: str) -> tuple[Readout, ...]:
    """The read-outs that a string such as `"sum+k_largest"` names; raises ValueError."""
    names = tuple(known for name in text.split("+") for known in READOUTS if known == name.strip())
    if len(names) != text.count("+") + 1 or len(set(names)) != len(names):
        raise ValueError(
            f"readout must be one of {', '.join(READOUTS)}, or several of these joined with +, "
            f"got {text!r}"
        )
    return names
