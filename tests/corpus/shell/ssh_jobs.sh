#!/bin/bash
for host in node0 node2 node4; do
  ssh $host "torchrun --nnodes=2 --nproc-per-node=8 --node-rank=0 --master-addr=$host --master-port=29500 train.py" &
done
for host in node1 node3 node5; do
  ssh $host "FIRST=\$(cat first); torchrun --nnodes=2 --nproc-per-node=8 --node-rank=1 --master-addr=\$FIRST --master-port=29500 train.py --on $host" &
done
wait
