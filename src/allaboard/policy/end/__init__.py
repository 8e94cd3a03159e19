"""From what is known and the user's policy to what is done, each with its reason. Pure."""
