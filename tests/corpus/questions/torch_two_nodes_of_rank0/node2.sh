python -m torch.distributed.launch --nproc_per_node=1 --nnodes=2 --node_rank=0 --master_addr=10.1.7.3 --master_port=2222 --use_env train.py
