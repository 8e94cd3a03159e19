deepspeed --hostfile=hosts --num_nodes 2 --num_gpus 8 --master_addr node1 --master_port 29500 train.py --deepspeed ds.json
