"""The search of the models, and fronts of several aims."""
