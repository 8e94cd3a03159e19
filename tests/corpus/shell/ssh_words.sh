#!/bin/bash
NODES=3
for host in $(cat hosts); do
  ssh -n $host torchrun --nnodes=$NODES --nproc-per-node=8 --node-rank=0 --master-addr=node0 --master-port=29500 train.py &
done
wait
