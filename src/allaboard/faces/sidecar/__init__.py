"""What a face needs that runs beside the job as a process of its own."""
