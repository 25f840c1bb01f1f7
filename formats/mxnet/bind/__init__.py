"""Variables of a symbol and the arrays, types and shapes that belong to them."""
