"""Pure data, frozen. Nothing here reads a clock, a file or a socket."""
