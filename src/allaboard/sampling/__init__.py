"""Stack samples and recorder reads, taken on demand."""
