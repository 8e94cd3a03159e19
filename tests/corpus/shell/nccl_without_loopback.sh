export NCCL_SOCKET_IFNAME=^lo,docker0
torchrun --nnodes=2 --node_rank=0 --nproc_per_node=1 --master_addr=10.9.0.10 --master_port=29500 fit.py
