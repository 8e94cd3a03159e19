mpirun -np 2 -H a:8,b:8 --map-by ppr:1:node torchrun --nnodes=2 --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=a:29500 train.py
