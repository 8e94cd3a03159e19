echo "usage: python main.py --dist-url tcp://HOST:PORT"
python main.py --dist-url tcp://10.0.0.1:23456 --world-size 2 --rank $1 --multiprocessing-distributed data
python -m torch.distributed.launch --nproc_per_node=4 tools/train.py --cfg a.yaml && python -m evaluate
