//! Which zone a path lies in.
