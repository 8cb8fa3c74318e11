-- What a bulk load left to be written, written at once.
checkpoint
