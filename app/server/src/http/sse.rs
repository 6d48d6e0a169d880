//! Server-sent events that OpenAI's clients read.

use std::convert::Infallible;

use axum::response::{
    IntoResponse, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures_util::{Stream, StreamExt};
use serde_json::Value;

use super::error::ApiError;

/// An event as clients take it apart: `data` is JSON whose `type` says what it is.
pub fn event(data: &Value) -> Event {
    Event::default().data(data.to_string())
}

/// The event that makes clients raise an error in the middle of a stream.
pub fn failure(error: &ApiError) -> Event {
    event(&error.body())
}

/// A stream of events, with a sign of life while there are none.
pub fn answer(events: impl Stream<Item = Event> + Send + 'static) -> Response {
    let events = events.map(Ok::<_, Infallible>);
    let mut response = Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response();
    // Proxies such as nginx would otherwise collect the events.
    let unbuffered = axum::http::HeaderValue::from_static("no");
    response
        .headers_mut()
        .insert("x-accel-buffering", unbuffered);
    response
}
