#!/bin/bash
# Four workers for a night: sbatch slurm.sh intop.toml
#SBATCH --job-name=intop-worker
#SBATCH --array=1-4
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=1G
#SBATCH --time=12:00:00
#SBATCH --signal=INT@120
#SBATCH --output=intop-worker-%A-%a.log
set -eu

# So that the signal at the end of the time reaches the worker itself, which gives its hosts back.
exec srun intop worker --config "${1:-intop.toml}" --log-json \
    --name "slurm-${SLURM_ARRAY_JOB_ID}-${SLURM_ARRAY_TASK_ID}"
