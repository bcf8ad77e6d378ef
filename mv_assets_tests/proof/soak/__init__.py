"""The demo under load while its processes are killed, one after the other, at random moments."""
