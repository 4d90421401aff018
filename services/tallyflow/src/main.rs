//! The binary: commands, and the one place where everything is wired.
fn main() {}
