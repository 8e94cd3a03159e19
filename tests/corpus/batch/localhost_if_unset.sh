: ${MASTER_ADDR:=localhost}
torchrun --nnodes=2 --node_rank=$R --nproc_per_node=8 --master_addr=$MASTER_ADDR --master_port=29500 train.py
