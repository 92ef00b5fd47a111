"""Object stores on this machine: servers, and a proxy that counts requests and injects faults."""
