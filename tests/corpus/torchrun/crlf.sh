export MASTER_ADDR=node0
torchrun --nproc-per-node=2 train.py
