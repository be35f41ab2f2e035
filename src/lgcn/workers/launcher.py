"""What the launcher of this process says, in environment variables. Nothing here imports torch."""

import os

# How often the group was started again. torchrun sets it, and `lgcn.workers.ray_group`.
RESTARTS = "TORCHELASTIC_RESTART_COUNT"


def launched() -> bool:
    """Whether torchrun, or a launcher like it, started several processes, this one among them."""
    return "RANK" in os.environ and os.environ.get("WORLD_SIZE", "1") != "1"


def is_restart() -> bool:
    """Whether torchrun or Ray started the group again, after a worker or node disappeared."""
    count = os.environ.get(RESTARTS, "0")
    return count.isdecimal() and int(count) > 0
