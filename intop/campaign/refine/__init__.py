"""The refinement: configurations that the models ask for, measured."""
