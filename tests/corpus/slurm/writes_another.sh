#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
set -e
##SBATCH --nodes=4
# SBATCH --exclusive
#SBATCH --nodes=2
cat > eval.sbatch <<EOF
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gres=gpu:1
python eval.py
EOF
echo "#!/bin/bash
#SBATCH --nodes=1
python eval.py" > again.sbatch
sbatch --dependency=afterok:$SLURM_JOB_ID <<'END'
#!/bin/bash
#SBATCH --nodes=1
python report.py
END
srun torchrun --nproc-per-node=4 --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=$HEAD:29500 train.py
