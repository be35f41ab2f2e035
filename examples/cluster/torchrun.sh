#!/usr/bin/env bash
# Train on the parts of a graph with torchrun.
#
#   bash torchrun.sh GRAPH OUT                                    one machine, two processes
#   NODES=4 HEAD=10.0.0.1:29400 bash torchrun.sh GRAPH OUT        the same line on each of four machines
#
# GRAPH is a store that `lgcn import` wrote, OUT the run folder. With several machines, both are on
# storage that all of them see.
set -euo pipefail
graph=$1 out=$2
nodes=${NODES:-1} workers=${WORKERS:-2} threads=${THREADS:-1}
parts=$graph-parts

# The number of parts decides what a step is, the number of workers only who computes it. A multiple
# of the workers keeps all of them busy. One machine cuts the graph; the others wait.
if [[ $nodes == 1 || ${HEAD%:*} == "$(hostname -i)" || ${HEAD%:*} == "$(hostname)" ]]; then
    [[ -e $parts/partition.json ]] || lgcn partition "$graph" "$parts" --parts $((nodes * workers))
fi
until [[ -e $parts/partition.json ]]; do sleep 5; done

# torchrun sets OMP_NUM_THREADS to 1 if it is not set. It starts all workers again when one stops; the
# run in OUT then resumes from its last checkpoint.
export OMP_NUM_THREADS=$threads NUMBA_NUM_THREADS=$threads
launch() { # a command of lgcn and its arguments
    local rendezvous=(--standalone)
    if [[ $nodes != 1 ]]; then
        rendezvous=(--rdzv-backend c10d --rdzv-endpoint "$HEAD" --rdzv-id "$1")
    fi
    torchrun --nnodes "$nodes" --nproc-per-node "$workers" --max-restarts 3 "${rendezvous[@]}" \
        -m lgcn "$@"
}
launch train --graph "$parts" --out "$out"
launch predict "$out" --output "$out-predictions"
