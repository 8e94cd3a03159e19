#!/bin/bash
i=0
for host in node0 node1 node2; do
  ssh $host "cd /work && torchrun --nnodes=3 --nproc-per-node=8 --node-rank=$i --master-addr=node0 --master-port=29500 train.py" &
  i=$((i+1))
done
wait
