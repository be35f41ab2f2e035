"""Read-outs: from the features of nodes to those of their graphs."""

from lgcn.nn.readout.joined import JoinedReadout
from lgcn.nn.readout.k_largest_readout import KLargestReadout
from lgcn.nn.readout.simple import SimpleReadout
from lgcn.nn.readout.sort_pooling import SortPooling

__all__ = ["JoinedReadout", "KLargestReadout", "SimpleReadout", "SortPooling"]
