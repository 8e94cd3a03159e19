mpirun -np 16 -H a:8,b:8 torchrun --nnodes=2 --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=a:29500 train.py
