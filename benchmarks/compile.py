"""The effect of torch.compile on training on a GPU, with and without CUDA graphs.

python -m benchmarks.compile [--device cpu|cuda] [--out FILE] [--quick]

100 epochs of LGCN_sub on Cora, as in benchmarks/training_step.py. Compilation happens
in the first turn, which is not timed.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks._common import QUICK_GRAPH, compare, machine, parse_arguments, write
from benchmarks.training_step import EPOCHS, SETTINGS
from lgcn import load_dataset
from lgcn.training import Settings
from lgcn.training.loop import train_epochs

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {"capture": False},
    "CUDA graph": {},
    "torch.compile": {"capture": False, "compile": True},
    "torch.compile and CUDA graph": {"compile": True},
}


def main() -> None:
    arguments = parse_arguments("compile", __doc__)
    epochs, repeats = (2, 1) if arguments.quick else (EPOCHS, 3)
    dataset = "synthetic" if arguments.quick else "cora"
    graph = load_dataset(dataset, **(QUICK_GRAPH if arguments.quick else {}))
    fixed = {"dataset": dataset, "device": arguments.device, **SETTINGS["LGCN_sub"]}
    options = {name: given for name, given in OPTIONS.items() if arguments.device == "cuda"}
    options = options or {"plain": {}, "torch.compile": {"compile": True}}
    variants: dict[str, Callable[[], object]] = {
        name: partial(train_epochs, graph, Settings.create(**fixed, **given), epochs)
        for name, given in options.items()
    }
    seconds = compare(variants, repeats, arguments.device, 60.0)
    for name, value in seconds.items():
        print(f"{name:30} {value:.3g} s", flush=True)
    results = {"dataset": dataset, "epochs": epochs, "seconds": seconds}
    write(
        arguments.out, arguments.device, {"results": results, "machine": machine(arguments.device)}
    )


if __name__ == "__main__":
    main()
