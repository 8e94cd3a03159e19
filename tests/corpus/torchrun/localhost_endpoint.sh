torchrun --nnodes=2 --nproc-per-node=8 --rdzv-backend=c10d \
  --rdzv-endpoint=localhost:29400 train.py
