deepspeed --hostfile hosts --no_ssh --num_nodes 2 train.py
