python -m accelerate.commands.launch --num_processes 2 --num_machines 1 train.py
