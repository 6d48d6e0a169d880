//! What keys mean that are not there.

use std::net::IpAddr;

/// Environment variable with further API keys.
pub const KEYS_VARIABLE: &str = "AUDIOCPP_API_KEYS";

pub fn host() -> IpAddr {
    IpAddr::from([127, 0, 0, 1])
}

pub fn port() -> u16 {
    8080
}

pub fn busy_timeout() -> u64 {
    300_000
}

pub fn queue_length() -> usize {
    32
}

pub fn idle_unload() -> u64 {
    600
}

pub fn watchdog() -> u64 {
    120
}

pub fn load_timeout() -> u64 {
    600
}

pub fn drain() -> u64 {
    30
}

pub fn task() -> String {
    "tts".into()
}

pub fn workers() -> usize {
    1
}
