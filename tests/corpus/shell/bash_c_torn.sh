#!/bin/bash
srun -N 2 bash -c 'torchrun --nnodes 2 --node-rank $SLURM_NODEID \ 
  --master-addr node0 train.py'
