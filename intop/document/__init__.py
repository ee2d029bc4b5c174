"""Documents: what they are made of, and a module for each form in which they are read."""
