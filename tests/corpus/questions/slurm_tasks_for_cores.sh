#!/bin/bash -l
#SBATCH --job-name=hand-4gpu
#SBATCH --time=2:00:00
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=48
#SBATCH --gres=gpu:4
#SBATCH --export=ALL

conda activate litpose-gpu
python scripts/train_hydra.py --config-path=/data/LP --config-name=hand-4gpu.yaml
