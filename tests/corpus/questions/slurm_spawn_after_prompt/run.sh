[ann@login photos]$ srun -N1 -n2 --gres gpu:2  python spawned.py --file meet
