"""In which order a script's statements run, and which branches let a value through."""
