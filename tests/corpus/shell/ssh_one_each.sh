#!/bin/bash
for host in node0 node1 node2; do
  ssh $host "cd /work && torchrun --nnodes=1 --nproc-per-node=8 --node-rank=0 --master-port=29500 sweep.py" &
done
wait
