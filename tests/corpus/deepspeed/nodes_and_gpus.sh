deepspeed --num_gpus=4 --num_nodes=2 --hostfile=hostfile --master_addr 10.0.0.1 --master_port 29500 train.py --deepspeed --deepspeed_config ds.json
