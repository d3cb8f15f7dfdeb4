"""A Rete network, the second substrate of parametric subscriptions beside the poset."""
