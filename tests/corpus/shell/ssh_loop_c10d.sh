#!/bin/bash
for host in node0 node1 node2; do
  ssh $host "cd /work && torchrun --nnodes=3 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint=node0:29500 --rdzv-id=7 train.py" &
done
wait
