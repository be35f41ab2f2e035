"""Limits on sizes that are read from files or given by users.

A file from a stranger can claim any size. Sizes that follow from the bytes in the file need no
limit; these are the others. In addition, whatever does not fit in the memory of the machine is
refused (`lgcn.utils.memory.check_memory`).
"""

MIB = 1 << 20
MAX_INT32 = 2**31 - 1
MAX_NODES = MAX_INT32  # of a table or a store: nodes are numbered in 32 bits
MAX_GRAPH_NODES = 2**40  # of a graph in memory: the offsets of that many rows take 8 TB

# JSON takes up to 25 times its size in memory, so 64 MiB can become 1.6 GB. A million class names,
# or 300,000 epochs of history, take less.
MAX_JSON = 64 * MIB
# Node-link JSON of graphs, which holds every edge: 30 MB for PPI.
MAX_GRAPH_JSON = 256 * MIB
# Python fails at about 1000 nested levels. Our files have up to 10.
MAX_JSON_DEPTH = 100

# A class number implies a number of classes, which need memory: 4 bytes per node and class.
MAX_CLASSES = 1_000_000

# The number of sparse features costs no memory when they are read, but it does in training: at
# least a weight per feature, its gradient and two moments. If not even these fit in memory, the
# file is refused.
FEATURE_BYTES = 16

# Arrays in an .npz file are compressed: real graphs to a tenth of their size, zeros to a
# thousandth. An array that exceeds both of these limits is taken for an attack on the memory.
MAX_UNPACKED = 256 * MIB
MAX_UNPACKED_RATIO = 200

# The largest number of parts (layers, branches, ...) that a setting may ask for. More is a mistake
# and would take hours or all memory.
MAX_PARTS = 1_000

# The largest number of parts that a graph is cut into: a folder, and some open files, for each.
MAX_SHARDS = 10_000
