-- Hear the bell on this connection.
listen ringcron_bell
