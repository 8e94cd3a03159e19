mpirun -np 2 -npernode 1 -x RANK=0 torchrun --standalone train.py
