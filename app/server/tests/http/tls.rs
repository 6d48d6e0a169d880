//! HTTPS.

use std::sync::Arc;

use audiocpp_server::http::{Settings, Tls, serve};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, RootCertStore, pki_types::ServerName},
};

use crate::{runner::TestRunner, server::Server};

#[tokio::test]
async fn a_server_with_a_certificate_speaks_https_alone() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let tls = Tls {
        certificate: folder.path().join("chain.pem"),
        key: folder.path().join("key.pem"),
    };
    std::fs::write(&tls.certificate, made.cert.pem()).unwrap();
    std::fs::write(&tls.key, made.signing_key.serialize_pem()).unwrap();
    let server = Server::with(|settings| settings.tls = Some(tls)).await;

    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let client = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(client));
    let socket = TcpStream::connect(&server.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut secure = connector.connect(name, socket).await.unwrap();
    let request = "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    secure.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    secure.read_to_string(&mut text).await.unwrap();
    assert!(
        text.starts_with("HTTP/1.1 200 OK") && text.contains("\"status\":\"ok\""),
        "{text}"
    );

    let plain = server
        .client
        .get(format!("{}/health", server.base))
        .send()
        .await;
    assert!(plain.is_err(), "without TLS there is no answer");
}

#[tokio::test]
async fn files_that_are_not_there_end_the_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tls = Tls {
        certificate: "missing.pem".into(),
        key: "missing.key".into(),
    };
    let settings = Settings {
        tls: Some(tls),
        ..Settings::default()
    };
    let runner = Arc::new(TestRunner::default());
    let ended = serve(listener, runner, settings, std::future::pending()).await;
    assert!(ended.is_err());
}
