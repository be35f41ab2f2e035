"""The names of structural features. Nothing here imports Numba or torch."""

NEIGHBOUR_DEGREES = ("mean_neighbour_degree", "max_neighbour_degree", "min_neighbour_degree")
OF_DEGREES = ("log_degree", "log_out_degree", "log_weighted_degree", *NEIGHBOUR_DEGREES)
NAMES = (
    *OF_DEGREES,
    "log_triangles",
    "clustering",
    "log_core",
    "log_pagerank",
    "log_component",
)
