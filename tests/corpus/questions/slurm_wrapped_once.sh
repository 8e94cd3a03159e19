 OMP_NUM_THREADS=1 sbatch -N1 -n2 -p gpu --gres=gpu:a100:2 --wrap "python -u meet.py run"
