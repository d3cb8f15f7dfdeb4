"""The network: brokers as processes, the clients that connect to them, and what they speak."""
