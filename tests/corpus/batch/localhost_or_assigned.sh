head=$(getent hosts n0 | awk '{print $1}') || head=127.0.0.1
torchrun --nnodes=2 --node_rank=$R --nproc_per_node=8 --master_addr $head --master_port=29500 train.py
