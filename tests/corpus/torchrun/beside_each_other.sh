#!/bin/bash
# two nodes played on one host
torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=127.0.0.1 --master-port=29500 train.py &
torchrun --nnodes=2 --node-rank=1 --nproc-per-node=1 --master-addr=127.0.0.1 --master-port=29500 train.py
wait
# nodes that c10d numbers
torchrun --nnodes=2 --node-rank=0 --rdzv-backend=c10d --rdzv-endpoint=localhost:29400 --rdzv-id=a train.py &
torchrun --nnodes=2 --node-rank=0 --rdzv-backend=c10d --rdzv-endpoint=localhost:29400 --rdzv-id=a train.py
wait
# jobs with ports of their own
torchrun --standalone --nproc-per-node=2 train.py --seed 1 &
torchrun --standalone --nproc-per-node=2 train.py --seed 2 &
torchrun --nproc-per-node=2 --master-port=29501 train.py --seed 3 &
torchrun --nproc-per-node=2 --master-port=29502 train.py --seed 4 &
torchrun --nproc-per-node=2 --rdzv-backend=c10d --rdzv-endpoint=localhost:0 train.py --seed 5 &
torchrun --nproc-per-node=2 --rdzv-backend=c10d --rdzv-endpoint=localhost:0 train.py --seed 6 &
wait
# one after the other
torchrun --nproc-per-node=4 --master-port=29501 train.py
torchrun --nproc-per-node=4 --master-port=29501 eval.py &
wait $!
torchrun --nproc-per-node=4 --master-port=29501 report.py &
wait
# a port that is counted up
PORT=29600
for seed in 1 2 3; do
  torchrun --nproc-per-node=1 --master-port=$PORT train.py --seed $seed &
  PORT=$((PORT + 1))
done
wait
for seed in 1 2 3; do
  ((PORT++))
  torchrun --nproc-per-node=1 --master-port=$PORT train.py --seed $seed &
done
for seed in 1 2 3; do
  torchrun --nproc-per-node=4 --master-port=29501 train.py --seed $seed &
  wait
done
for seed in 1 2 3; do
  torchrun --nproc-per-node=1 --master-port=2960$seed train.py --seed $seed &
done
wait
if [ "$1" = a ]; then
  torchrun --nproc-per-node=2 train.py --config a &
else
  torchrun --nproc-per-node=2 train.py --config b &
fi
ssh node1 "torchrun --nproc-per-node=2 --master-port=29501 train.py" &
ssh node2 "torchrun --nproc-per-node=2 --master-port=29501 train.py" &
wait
