#!/bin/bash
for host in gpu1 gpu2; do
  ssh $host mkdir -p /scratch/run; rsync -a data/ $host:/scratch/run/
done
ssh gpu2 "cd /scratch/run; torchrun --nnodes=2 --node-rank=1 --master-addr=gpu1 --master-port=29500 --nproc-per-node=4 train.py" &
torchrun --nnodes=2 --node-rank=0 --master-addr=gpu1 --master-port=29500 --nproc-per-node=4 train.py
