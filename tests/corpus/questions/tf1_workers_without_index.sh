PS0
python3 "${CODE}cnn.py" "--job_name=ps" "--batch_size=128" "--ps_hosts=${PS}" "--worker_hosts=${WORKERS}" 2>&1 | tee -a $LOG
W2
python3 "${CODE}cnn.py" "--job_name=worker" "--batch_size=128" "--ps_hosts=${PS}" "--worker_hosts=${WORKERS}"
W1
python3 "${CODE}cnn.py" "--job_name=worker" "--batch_size=128" "--ps_hosts=${PS}" "--worker_hosts=${WORKERS}"
