//! Starts one child for the kernel and ends its whole tree when it, or the kernel, ends.

fn main() {}
