"""Subscription summaries: what many subscriptions ask for, attribute by attribute, in arrays.

After "Subscription Summarization" (Triantafillou and Economides, 2004). `tables` is the form in
which summaries are merged and exchanged.
"""
