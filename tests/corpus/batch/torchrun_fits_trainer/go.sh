torchrun --nnodes=2 --node_rank=$R --nproc_per_node=8 --master_addr=n0 --master_port=29500 fit.py
