//! `audiocpp_cli`.
fn main() {}
