import torch
print "old"
