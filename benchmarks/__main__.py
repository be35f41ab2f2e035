"""Runs all benchmarks: python -m benchmarks"""

import subprocess
import sys

# A process each, so that none finds the memory or the threads of another.
for name in ("k_largest", "epoch", "subgraph"):
    print(f"== {name}", flush=True)
    subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *sys.argv[1:]], check=True)
