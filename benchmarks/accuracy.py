"""Test accuracy of the defaults, and of what one changed option does to it.

python -m benchmarks.accuracy [--out FILE] [--seeds N] [--datasets NAME ...] [--processes N]

The score is the test accuracy at the epoch with the best validation accuracy; the released
program's rule, which looks at the test set, stands beside it.
"""

import argparse
import multiprocessing
import os
import statistics
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

# What is changed against the defaults.
ONE_HOP = {"max_hops": 1, "resample": False}
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "one-hop sub-graph, as released": ONE_HOP,
    "one-hop sub-graph and Nadam": {**ONE_HOP, "optimizer": "nadam"},
    "one-hop, Nadam, batch norm": {**ONE_HOP, "optimizer": "nadam", "batch_norm": "batch"},
    "whole-graph training": {"training": "whole"},
    "padded zeros": {"zeros": "pad"},
    "raw ranking, padded zeros": {"rank": "raw", "self_loops": False, "zeros": "pad"},
    "dropout 0.16, as printed": {"dropout": 0.16},
    "learning rate 0.01": {"lr": 0.01},
    "GCN layers for LGCLs": {"layer": "gcn"},
}


def train_once(dataset: str, variant: str, seed: int) -> dict[str, Any]:
    """One run in a process of one thread."""
    import torch

    from lgcn import load_dataset
    from lgcn.training import Config, train

    torch.set_num_threads(1)
    config = Config.create(dataset=dataset, seed=seed, device="cpu", **VARIANTS[variant])
    record = train(load_dataset(dataset), config).record
    kept = ("val_score", "test_score", "test_score_released_rule", "best_epoch", "epochs")
    return {"dataset": dataset, "variant": variant, "seed": seed} | {k: record[k] for k in kept}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    def percent(key: str) -> dict[str, float]:
        values = [100 * run[key] for run in runs]
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        return {"mean": round(statistics.mean(values), 2), "std": round(spread, 2)}

    scores = {k: percent(k) for k in ("val_score", "test_score", "test_score_released_rule")}
    return {"seeds": len(runs), **scores}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/accuracy.json"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--datasets", nargs="+", default=["cora", "citeseer", "pubmed"])
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    # Read by OpenMP and Numba when the processes start.
    os.environ |= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    from benchmarks._common import machine, write

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.processes, mp_context=context) as pool:
        jobs = [
            pool.submit(train_once, dataset, variant, seed)
            for dataset in arguments.datasets
            for variant in arguments.variants
            for seed in range(arguments.seeds)
        ]
        runs = [job.result() for job in jobs]
    results = []
    for dataset in arguments.datasets:
        for variant in arguments.variants:
            own = [r for r in runs if (r["dataset"], r["variant"]) == (dataset, variant)]
            result = {"dataset": dataset, "variant": variant, **summary(own)}
            results.append(result)
            test, released = result["test_score"], result["test_score_released_rule"]
            print(
                f"{dataset:9} {variant:32} {test['mean']:5.1f} ± {test['std']:.1f} "
                f"(released rule {released['mean']:.1f}; validation "
                f"{result['val_score']['mean']:.1f}; {result['seeds']} seeds)"
            )
    write(arguments.out, {"machine": machine(), "results": results, "runs": runs})


if __name__ == "__main__":
    main()
