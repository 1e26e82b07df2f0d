#!/bin/sh
# An archive backfilled by an array of Slurm: each task is a shard.
#
#     sbatch slurm.sh ARCHIVE... --out OUT [FLAG...]
#
# docs/schedulers/slurm.md explains it.
#SBATCH --job-name=backfill
#SBATCH --array=0-15
#SBATCH --cpus-per-task=2
#SBATCH --mem=1G
#SBATCH --time=04:00:00
#SBATCH --signal=B:TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append

interrupted=75 # what was read is committed, and something is left

# A shell runs a trap after the command at work: so the program is one in the background.
trap 'kill -TERM "$program"' TERM
GOMAXPROCS=${SLURM_CPUS_PER_TASK:-1} entropipe backfill "$@" \
  --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" &
program=$!
wait "$program"
status=$?
while kill -0 "$program" 2>/dev/null; do # the signal ended wait, and the program is draining
  wait "$program"
  status=$?
done
if [ "$status" -eq "$interrupted" ]; then
  scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
fi
exit "$status"
