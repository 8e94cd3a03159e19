#!/bin/bash
for host in node0 node1 node2; do
  ssh $host "cd /work && torchrun --nnodes=3 --nproc-per-node=8 --node-rank=0 --master-addr=node0 --master-port=29500 train.py" &
done
wait
