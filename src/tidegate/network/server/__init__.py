"""The broker as a process: sockets, sessions and the store around `routing.broker`."""
