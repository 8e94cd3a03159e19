#!/bin/bash
for host in node0 node1; do
  ssh $host 'RANK=${HOSTNAME#node} WORLD_SIZE=2 MASTER_ADDR=node0 MASTER_PORT=29500 python train.py' &
  ssh node9 "RANK=0 WORLD_SIZE=1 python eval.py --on $host" &
done
wait
