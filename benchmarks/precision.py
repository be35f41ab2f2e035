"""Test accuracy of training in bfloat16 against float32, on a GPU.

python -m benchmarks.precision [--out FILE] [--seeds N] [--datasets NAME ...]

LGCN_sub on one-hop sub-graphs, whose steps are replayed as CUDA graphs.
"""

import statistics
from typing import Any

from benchmarks._common import machine, make_parser, write
from lgcn import load_dataset
from lgcn.training import Settings, train

ONE_HOP = {"max_hops": 1, "resample": False}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    def percent(key: str) -> dict[str, float]:
        values = [100 * run[key] for run in runs]
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        return {"mean": round(statistics.mean(values), 2), "std": round(spread, 2)}

    scores = {k: percent(k) for k in ("val_score", "test_score", "test_score_released_rule")}
    return {"seeds": len(runs), **scores}


def run(dataset: str, precision: str, seed: int) -> dict[str, Any]:
    settings = Settings.create(
        dataset=dataset, seed=seed, precision=precision, device="cuda", max_nodes=None, **ONE_HOP
    )
    record = train(load_dataset(dataset), settings).record
    kept = ("val_score", "test_score", "test_score_released_rule", "best_epoch", "epochs")
    head = {"dataset": dataset, "precision": precision, "seed": seed, "seconds": record["seconds"]}
    return head | {key: record[key] for key in kept}


def main() -> None:
    parser = make_parser("precision", __doc__)
    parser.add_argument("--seeds", type=int, default=10, help="runs per row (default: 10)")
    parser.add_argument("--datasets", nargs="+", default=["cora", "citeseer", "pubmed"])
    arguments = parser.parse_args()
    runs: list[dict[str, Any]] = []
    results = []
    for dataset in arguments.datasets:
        for precision in ("float32", "bfloat16"):
            own = [run(dataset, precision, seed) for seed in range(arguments.seeds)]
            runs += own
            results.append({"dataset": dataset, "precision": precision, **summary(own)})
            test = results[-1]["test_score"]
            print(f"{dataset:9} {precision:9} {test['mean']:.1f} ± {test['std']:.1f}", flush=True)
            write(
                arguments.out,
                "cuda",
                {"machine": machine("cuda"), "results": results, "runs": runs},
            )


if __name__ == "__main__":
    main()
