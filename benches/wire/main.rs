//! From the bytes of OFFERS events to decisions.

fn main() {}
