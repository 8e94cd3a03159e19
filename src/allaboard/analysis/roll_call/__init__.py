"""The roll call: which members are present, late or missing, decided from what they declared."""
