torchrun --nproc_per_node=4 --nnodes=2 --rdzv_backend=c10d --rdzv_endpoint=node0 --rdzv_id=1 train.py &
torchrun --nproc_per_node 4 --nnodes 2 --rdzv_endpoint node0:29400 train.py
