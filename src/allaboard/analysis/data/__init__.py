"""The batches of data that ranks took."""
