"""Routing by subscription summaries: who merges whose, how they are sent, how events follow."""
