"""The largest sizes that are believed of a file: what a few bytes may make this program ask for.

A file that a stranger wrote can name any size. Sizes that follow from the bytes in the file need no
limit. These are the others. Beside them, whatever would not fit in the memory of the machine is
refused with the memory it would need (:func:`lgcn.utils.sizes.check_memory`).
"""

MIB = 1 << 20
MAX_INT32 = 2**31 - 1
MAX_NODES = MAX_INT32  # of a table or a store: nodes are numbered in 32 bits

# JSON takes up to 25 times its size in memory, so that 64 MiB can become 1.6 GB. The largest files
# that this program writes are far smaller: a million class names, or 300,000 epochs of history.
MAX_JSON = 64 * MIB
# Node-link JSON of graphs, which holds every edge: that of PPI has 30 MB.
MAX_GRAPH_JSON = 256 * MIB
# Python fails at about 1000 levels of lists in lists, wherever it meets them; ours have 10.
MAX_JSON_DEPTH = 100

# A class number is also a count of classes, for which memory is needed: 4 bytes per node and class.
MAX_CLASSES = 1_000_000

# Sparse features take no memory by their number, but training does: a weight per feature at least,
# its gradient and its two moments. A number of features for which not even these fit in memory is
# refused when the file is read.
FEATURE_BYTES = 16

# Arrays in an .npz file are compressed. Real graphs shrink to a tenth, a run of zeros to a
# thousandth: what is larger than both of these is made to fill the memory.
MAX_UNPACKED = 256 * MIB
MAX_UNPACKED_RATIO = 200

# Settings that are a number of parts, built or run one after the other: more than this is a
# mistake, and would take hours or all memory.
MAX_PARTS = 1_000
