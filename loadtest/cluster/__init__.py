"""The cluster that is put under load: one of our own on this machine, or one that the user runs."""
