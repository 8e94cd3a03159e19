torchrun --nproc-per-node=4 \ 
    --nnodes=2 \ 
    --node-rank=$NODE_RANK \ 
    --master-addr=node0 --master-port=29500 train.py
