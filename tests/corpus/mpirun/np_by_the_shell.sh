mpirun -np $NP -H $HOSTS python train.py
