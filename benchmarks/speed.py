"""lgcn beside its alternatives: one table of ratios and targets, measured in one run.

python -m benchmarks.speed [--device cpu|cuda] [--out FILE] [--quick]

What is compared takes turns in one process. On a GPU it takes some minutes, compilation included.
"""

import time
from typing import Any

from benchmarks import speed_cpu, speed_cuda
from benchmarks._common import machine, parse_arguments, write
from benchmarks.report_tables import number
from benchmarks.speed_table import speed


def main() -> None:
    arguments = parse_arguments("speed", __doc__)
    device, quick = arguments.device, arguments.quick
    began = time.perf_counter()
    rows = speed_cpu.rows(quick) if device == "cpu" else speed_cuda.rows(device, quick)
    record: dict[str, Any] = {"results": [], "machine": machine(device)}
    for row in rows:
        record["results"].append(row.record())
        record["seconds"] = time.perf_counter() - began
        print(f"{record['seconds']:5.0f} s  {row.what}: {number(row.value)} {row.unit}", flush=True)
        write(arguments.out, device, record)  # after each, so that an interruption loses nothing
    print(speed(record))


if __name__ == "__main__":
    main()
