//! What users are told, seen from outside the crate's parts.

mod mistakes;
mod noise;
mod values;

/// The first line of most files here.
const HEAD: &str = "app = \"shop\"";
