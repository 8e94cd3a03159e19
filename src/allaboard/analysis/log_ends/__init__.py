"""What the end of a log says: whether a program went on after an error, and in which error it ended."""
