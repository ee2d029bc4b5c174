"""The pilot, which finds how long a trial takes."""
