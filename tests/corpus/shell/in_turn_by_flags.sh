python main.py --dist-url tcp://127.0.0.1:23456 --world-size 2 --rank 0 --epochs 3 /data
python main.py --dist-url tcp://127.0.0.1:23456 --world-size 2 --rank 1 /data
