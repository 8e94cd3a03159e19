"""Scripts that were not given whole: made to parse, with the imports that they lack."""
