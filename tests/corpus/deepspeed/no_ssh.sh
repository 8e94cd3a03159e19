deepspeed --hostfile hosts --no_ssh --num_nodes 2 --node_rank 1 --master_addr node1 train.py
