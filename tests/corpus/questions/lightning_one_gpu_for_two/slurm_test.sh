#!/bin/bash
#SBATCH --cpus-per-task=4
#SBATCH --gres=gpu:p6000:1
#SBATCH --mem=32GB
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --qos=high
#SBATCH --time=2160

srun --unbuffered python train.py
