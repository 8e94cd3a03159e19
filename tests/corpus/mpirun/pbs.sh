#!/bin/bash
#PBS -l select=4:ncpus=32:ngpus=4
#PBS -l walltime=01:00:00
cd $PBS_O_WORKDIR
NNODES=$(sort -u $PBS_NODEFILE | wc -l)
MASTER_ADDR=$(head -n 1 $PBS_NODEFILE)
mpiexec -n $NNODES --ppn 1 torchrun --nnodes=$NNODES --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:29400 train.py
