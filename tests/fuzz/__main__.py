"""``make fuzz``: runs all targets on random cases for some minutes."""

import argparse
import os
import secrets
import sys
from pathlib import Path

# Read by Numba, torch and CUDA when they are imported: one process per core, one thread each.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["LGCN_OFFLINE"] = "1"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=10, help="time after the first cases (default: 10)"
    )
    parser.add_argument("--cases", type=int, help="cases per target (default: no limit)")
    parser.add_argument("--targets", help="names, separated by commas (default: all)")
    parser.add_argument("--jobs", type=int, help="processes (default: one per core)")
    parser.add_argument("--seed", type=int, help="seed of all random numbers (default: random)")
    parser.add_argument("--report", type=Path, help="write the counts to this JSON file")
    parser.add_argument("--found", type=Path, help="file for failing cases (default: found.jsonl)")
    parser.add_argument("--memory-mb", type=int, default=2048, help="memory limit of a process")
    parser.add_argument("--case-seconds", type=float, default=20, help="time limit of a case")
    parser.add_argument("--no-warm-up", action="store_true", help="do not compile kernels first")
    parser.add_argument(
        "--replay", nargs="*", metavar="NAME", help="run kept examples of --found (default: all)"
    )
    given = parser.parse_args()

    from . import driver, found
    from .processes import Limits
    from .targets import TARGETS, UNLISTED

    file = given.found or found.FILE
    limits = Limits(given.memory_mb << 20, given.case_seconds)
    if given.replay is not None:
        examples = {example.name: example for example in found.kept(file)}
        if unknown := set(given.replay) - set(examples):
            parser.error(f"no example {min(unknown)!r} in {file}")
        chosen = [examples[name] for name in given.replay or examples]
        return int(driver.replay(chosen, limits) > 0)
    names = tuple(given.targets.split(",")) if given.targets else tuple(TARGETS)
    for name in names:
        if name not in TARGETS | UNLISTED:
            parser.error(f"no target {name!r}; there are {', '.join(TARGETS)}")
    options = driver.Options(
        targets=names,
        minutes=given.minutes,
        cases=given.cases,
        jobs=given.jobs or len(os.sched_getaffinity(0)),
        seed=secrets.randbits(32) if given.seed is None else given.seed,
        limits=limits,
        found=file,
        warm_up=not given.no_warm_up,
    )
    return int(driver.run(options, given.report) > 0)


if __name__ == "__main__":
    sys.exit(main())
