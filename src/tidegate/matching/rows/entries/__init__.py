"""From rows of subscriptions to entries of the index: conjunctions of bounds on channels."""
