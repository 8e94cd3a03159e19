torchrun --nnodes=two --nproc-per-node=0 train.py
