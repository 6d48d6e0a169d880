//! `audiocpp_server`.
fn main() {}
