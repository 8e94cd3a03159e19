deepspeed --hostfile hosts --num_nodes 2 --master_addr localhost train.py
