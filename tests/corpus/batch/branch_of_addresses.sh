if [ -n "$HEAD" ]; then ADDR=$HEAD; else ADDR=localhost; fi
torchrun --nnodes=2 --node_rank=$R --nproc_per_node=8 --master_addr=$ADDR --master_port=29500 train.py
