export NCCL_SOCKET_IFNAME=lo
torchrun --nnodes=4 --node_rank=$1 --nproc_per_node=4 --master_addr=10.9.0.10 --master_port=29500 fit.py
