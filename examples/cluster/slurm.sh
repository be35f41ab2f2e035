#!/usr/bin/env bash
#SBATCH --job-name=lgcn
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=12:00:00
#SBATCH --requeue
# Train on the parts of a graph on a SLURM cluster: sbatch slurm.sh
#
# GRAPH and OUT are on storage that all nodes see; SLURM_TMPDIR or /tmp is a disk of the node.
set -euo pipefail
export GRAPH=${GRAPH:-$HOME/graphs/big} OUT=${OUT:-$HOME/runs/big}
export WORKERS=4                        # processes per node
export THREADS=$((SLURM_CPUS_PER_TASK / WORKERS))
export PARTS=$GRAPH-parts
export HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export PORT=$((20000 + SLURM_JOB_ID % 20000))   # jobs on one node must not meet

# Once: cut the graph into as many parts as there are workers.
if [[ ! -e $PARTS/partition.json ]]; then
    srun --nodes=1 --ntasks=1 lgcn partition "$GRAPH" "$PARTS" --parts $((SLURM_NNODES * WORKERS))
fi

# On each node: copy the parts to its disk, then start its workers. torchrun numbers the nodes as they
# come, and anew after a restart, so each node gets all parts. If the disks are too small, omit the
# copy and train on $PARTS: a worker reads its own parts only.
srun --kill-on-bad-exit=1 bash -c '
    set -euo pipefail
    local=${SLURM_TMPDIR:-/tmp}/lgcn-$SLURM_JOB_ID
    mkdir -p "$local"
    trap "rm -rf $local" EXIT
    cp -r "$PARTS" "$local/parts"
    export OMP_NUM_THREADS=$THREADS NUMBA_NUM_THREADS=$THREADS
    resume=()
    if [[ -e $OUT/run.json ]]; then resume=(--resume); fi   # the job was requeued
    launch=(torchrun --nnodes "$SLURM_NNODES" --nproc-per-node "$WORKERS" --max-restarts 3
            --rdzv-backend c10d --rdzv-endpoint "$HEAD:$PORT" --rdzv-id "$SLURM_JOB_ID")
    "${launch[@]}" -m lgcn train --graph "$local/parts" --out "$OUT" "${resume[@]}"
    "${launch[@]}" -m lgcn predict "$OUT" --graph "$local/parts" --output "$OUT-predictions"
'
