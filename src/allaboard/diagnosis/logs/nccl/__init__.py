"""What messages of NCCL, of its watchdogs and of flight recorders mean together."""
