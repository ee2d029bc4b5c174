"""Mathematics over trials: designs, screening, surrogate models, the genetic search."""
