#!/bin/bash
# several evaluations on a host, one a GPU
set -euo pipefail
PORT=29600
pids=()
for task in mmlu gsm8k arc; do
  gpu=$((PORT % 8))
  CUDA_VISIBLE_DEVICES=$gpu torchrun --nproc_per_node=1 --master_port=$PORT eval.py --task "$task" > "$task.log" 2>&1 &
  pids+=($!)
  PORT=$((PORT + 1))
done
for pid in "${pids[@]}"; do wait "$pid"; done
for gpu in 0 1 2 3; do
  torchrun --nproc_per_node=1 --master_port=$((29700 + gpu)) eval.py --gpu $gpu &
  if (( gpu % 2 == 1 )); then wait; fi
done
wait
