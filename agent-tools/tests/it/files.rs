//! Files of unusual kinds, modes and sizes, through the tools.
