"""The stages, as short functions over the store, the hosts and the models."""
