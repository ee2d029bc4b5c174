"""The migrations, in the order of their numbers. `intop.store.schema.KNOWN` names each of them."""
