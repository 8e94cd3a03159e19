deepspeed --include localhost:0,1 --master_port 29501 train.py --config a.json &
deepspeed --include localhost:2,3 --master_port 29502 train.py --config b.json &
wait
