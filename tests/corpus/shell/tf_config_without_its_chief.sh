export TF_CONFIG='{"cluster":{"worker":["10.0.0.4:5001","10.0.0.5:5002"]},"task":{"type":"chief","index":0}}'
python fit.py
