#!/bin/bash
#SBATCH --job-name=dummy
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:2
#SBATCH --mem=20G

srun python dummy.py
