"""A deterministic simulated world around brokers: overlays, workloads, faults, traces, reports."""
