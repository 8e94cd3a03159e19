# each worker takes its number from TASK
export TASK=0
python3 cnn.py --job_name=worker --ps_hosts=ps0:2222 --worker_hosts=w0:2222,w1:2222
export TASK=1
python3 cnn.py --job_name=worker --ps_hosts=ps0:2222 --worker_hosts=w0:2222,w1:2222
