//! The HTTP side over models that compute something simple and checkable: what is asked of them is
//! recorded, and what they give back can be worked out by hand.

mod cancel;
mod fuzz;
mod limits;
mod models;
mod operations;
mod realtime;
mod runner;
mod separations;
mod server;
mod speech;
mod speech_formats;
mod stream;
mod tasks;
mod tls;
mod transcriptions;
mod uploads;
mod voices;
