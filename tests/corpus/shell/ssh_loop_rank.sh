#!/bin/bash
for host in node0 node1 node2; do
  ssh $host "cd /work; MASTER_ADDR=node0 MASTER_PORT=29500 WORLD_SIZE=3 RANK=0 python train.py" &
done
wait
