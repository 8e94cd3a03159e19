    srun --nodelist=gpu-07 accelerate launch --config_file two_r0.yaml main.py
    srun --nodelist=gpu-11 accelerate launch --config_file two_r1.yaml main.py
