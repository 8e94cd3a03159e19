accelerate launch --config_file two.yaml --num_machines 2 train.py
