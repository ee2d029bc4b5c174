"""Stages: the contract of one, and what carries out any of them."""
