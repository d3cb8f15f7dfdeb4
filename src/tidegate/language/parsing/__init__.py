"""From the text of a filter to its tree, and from many texts to shapes and rows in bulk."""
