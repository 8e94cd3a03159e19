"""Steps of a Slurm batch script: what they ask for, and which mistakes they make."""
