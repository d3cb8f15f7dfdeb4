"""Random runs of an overlay, compared with the oracle and with a state computed from scratch."""
