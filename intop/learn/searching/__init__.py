"""Searches over models: for one objective and for several. Only here is DEAP known."""
