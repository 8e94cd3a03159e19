"""Tables of the mistakes in the set-up of a job whose exceptions are known, by what they are about."""
