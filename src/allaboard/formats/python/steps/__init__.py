"""What the steps of a training loop do: with the other ranks, and with data of their own."""
