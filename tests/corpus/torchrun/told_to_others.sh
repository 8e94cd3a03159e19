python submit.py torchrun --nproc-per-node=8 --master-port=29501 train.py --seed 1 &
python submit.py torchrun --nproc-per-node=8 --master-port=29501 train.py --seed 2 &
docker run --rm t torchrun --nproc-per-node=8 --master-port=29501 train.py --seed 1 &
docker run --rm t torchrun --nproc-per-node=8 --master-port=29501 train.py --seed 2 &
srun -N1 -n1 torchrun --nproc-per-node=8 --master-port=29501 train.py --seed 1 &
srun -N1 -n1 torchrun --nproc-per-node=8 --master-port=29501 train.py --seed 2 &
wait
