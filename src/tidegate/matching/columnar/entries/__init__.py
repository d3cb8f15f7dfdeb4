"""From the rows of subscriptions to index entries: conjunctions of bounds on channels."""
