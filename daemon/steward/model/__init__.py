"""Pure, frozen data: no module here reads a clock, a file or a socket."""
