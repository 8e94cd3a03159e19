mpirun -np 4 -x RANK=0 ./set_ranks.sh python train.py
