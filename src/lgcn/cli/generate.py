"""`lgcn generate`: write a random graph to a graph store."""

import shlex
from typing import Annotated

import typer

from lgcn.cli.options import FeatureType, Json, OverwriteStore, StoreFolder
from lgcn.cli.output import err, print_json, print_line
from lgcn.cli.words import flag_names
from lgcn.utils.progress import step_progress


def generate(
    store: StoreFolder,
    nodes: Annotated[int, typer.Option(help="Number of nodes.")],
    edges: Annotated[int, typer.Option(help="Number of undirected edges to draw.")],
    features: Annotated[int, typer.Option(help="Number of features per node.")] = 64,
    classes: Annotated[int, typer.Option(help="Number of classes.")] = 10,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    homophily: Annotated[
        float, typer.Option(help="Share of edges that join nodes of one class.")
    ] = 0.5,
    imbalance: Annotated[
        float, typer.Option(help="The size of class c falls as (c + 1)^-IMBALANCE. 0: equal sizes.")
    ] = 1.0,
    label_noise: Annotated[
        float, typer.Option(help="Share of nodes with a random label, which limits the accuracy.")
    ] = 0.1,
    noise: Annotated[
        float, typer.Option(help="Noise of features, in distances of two classes' centres.")
    ] = 0.7,
    locality: Annotated[
        float, typer.Option(help="Share of edges within regions of at least 1000 nodes.")
    ] = 0.75,
    skew: Annotated[
        float, typer.Option(help="0: degrees are about equal. 1: there are a few large hubs.")
    ] = 0.5,
    feature_type: FeatureType = "float32",
    memory: Annotated[str, typer.Option(help="Memory that sorting the edges may use.")] = "1GB",
    overwrite: OverwriteStore = False,
    as_json: Json = False,
) -> None:
    """Write a random graph of any size to a graph store, with classes that are hard to learn."""
    from lgcn.store.new_store_checks import check_new_store, generated_kind, generated_sizes

    names = {f"num_{name}": f"--{name}" for name in ("nodes", "edges", "features", "classes")}
    with flag_names(**names, features="--feature-type"), step_progress(err) as on_progress:
        generated_sizes(nodes, edges, features, classes, seed)
        kind = generated_kind(homophily, imbalance, label_noise, noise, locality, skew)
        check_new_store(store, feature_type, memory, overwrite)
        from lgcn.store.generate import generate_store

        header = generate_store(
            store,
            num_nodes=nodes,
            num_edges=edges,
            num_features=features,
            num_classes=classes,
            seed=seed,
            **kind._asdict(),
            features=feature_type,  # type: ignore[arg-type]  # checked there
            memory=memory,
            overwrite=overwrite,
            on_progress=on_progress,
        )
    ceiling = header["source"]["accuracy_ceiling"]
    record = {"store": str(store), "nodes": header["num_nodes"], "edges": header["num_edges"] // 2}
    if as_json:
        print_json({**record, "accuracy_ceiling": ceiling})
        return
    print_line(f"wrote {record['nodes']:,} nodes and {record['edges']:,} edges to {store}")
    if label_noise:
        print_line(f"label noise limits the accuracy of every model to about {ceiling:.1%}")
    print_line(f"next: lgcn train --graph {shlex.quote(str(store))}")
