if [ -z "$MASTER_ADDR" ]; then MASTER_ADDR=localhost; fi
torchrun --nnodes=2 --node_rank=$R --nproc_per_node=8 --master_addr=$MASTER_ADDR --master_port=29500 train.py
