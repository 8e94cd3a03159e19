"""The workers' output and the progress of the job, in the terminal and in files."""
