mpirun --oversubscribe -np 8 -H a:2,b:2 python train.py
