#!/bin/bash
for host in node0 node1; do
  if [ $host = node0 ]; then
    ssh $host "torchrun --nnodes=2 --nproc-per-node=8 --node-rank=0 --master-addr=node0 --master-port=29500 train.py" &
  else
    ssh $host "torchrun --nnodes=2 --nproc-per-node=8 --node-rank=1 --master-addr=node0 --master-port=29500 train.py" &
  fi
done
wait
