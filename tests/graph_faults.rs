//! What does not fit is a typed error: never a panic, never ggml's abort.

#[path = "graph/devices.rs"]
mod devices;
#[path = "graph/limits.rs"]
mod limits;
#[path = "graph/live.rs"]
mod live;
#[path = "graph/mistakes.rs"]
mod mistakes;
#[path = "graph/misuse.rs"]
mod misuse;
