"""What to say when the loss is no longer a finite number."""

import math

from lgcn.errors import TrainingDiverged
from lgcn.graph import Graph
from lgcn.training.checks import value_range
from lgcn.training.run_folder import Run
from lgcn.training.settings import Settings

LARGE = 1e18  # the square of a larger value comes near the limit of float32


def check_finite(
    name: str,
    value: float,
    epoch: int,
    graph: Graph,
    settings: Settings,
    run: Run | None = None,
) -> None:
    """Raises TrainingDiverged if a loss is NaN or infinite, and names the likely cause.

    Args:
        name: What the value is.
        value: The value.
        epoch: The current epoch.
        graph: The graph, whose features or weights may be the cause.
        settings: The settings, whose learning rate may be the cause.
        run: The run folder, which may hold a good checkpoint. (default: none)
    """
    if math.isfinite(value):
        return
    kept = run.load_checkpoint() if run is not None else None
    where = f" The last good checkpoint is of epoch {kept[0]}." if kept else ""
    lr = settings.optimisation.lr
    cause = unusual_values(graph) or (
        f"A smaller learning rate than lr={lr:g} may help, such as --set lr={min(0.01, lr / 10):g}"
    )
    raise TrainingDiverged(f"the {name} became {value} in epoch {epoch}.{where} {cause}")


def unusual_values(graph: Graph) -> str | None:
    """A likely cause in the features or edge weights, and the remedy; ``None`` if there is none."""
    if graph.x is not None and graph.x.is_floating_point():
        low, high = value_range(graph.x)
        if math.isnan(low) or math.isinf(low) or math.isinf(high):
            return "Some features (x) are NaN or inf: replace them"
        if max(-low, high) > LARGE:
            return (
                f"The features (x) are very large, up to {max(-low, high):.2g}: divide them by "
                "that, or let lgcn scale them with --set input_scale=none"
            )
    if graph.edge_weight is not None:
        _, high = value_range(graph.edge_weight)
        if high > LARGE:
            return (
                f"The edge weights (edge_weight) are very large, up to {high:.2g}: divide them by "
                "that, or omit weight_column"
            )
    return None
