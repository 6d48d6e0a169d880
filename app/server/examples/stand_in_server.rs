//! Serves the models of the HTTP tests, which compute something simple, so that clients can be tried
//! without real ones: `cargo run --example stand_in_server -- 127.0.0.1:8080`.

#[allow(dead_code, reason = "tests look into it")]
#[path = "../tests/http/runner.rs"]
mod runner;

use std::sync::Arc;

use audiocpp_server::http::{self, Settings};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("http://{}", listener.local_addr()?);
    let stop = async {
        // Without signals it is stopped in other ways.
        let _ = tokio::signal::ctrl_c().await;
    };
    let runner = Arc::new(runner::TestRunner::default());
    http::serve(listener, runner, Settings::default(), stop).await?;
    Ok(())
}
