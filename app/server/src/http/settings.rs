//! What the configuration decides about the HTTP side.

use std::{collections::BTreeMap, path::PathBuf};

/// Limits, keys and places of the HTTP side; the default is safe on a private machine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Most bytes of a body with files.
    pub max_upload_bytes: u64,
    /// Most seconds of sound in a request.
    pub max_audio_seconds: f64,
    /// Most characters of a text to speak.
    pub max_text_chars: usize,
    /// Most bytes of a JSON body.
    pub max_json_bytes: usize,
    /// Keys of which a request has to carry one; empty lets everybody in.
    pub api_keys: Vec<String>,
    /// Origins that browsers may call from, `*` for all; empty for this server's own pages alone.
    pub cors_origins: Vec<String>,
    /// Folders below which requests may name files of this machine; empty for nowhere.
    pub allowed_audio_roots: Vec<PathBuf>,
    /// Folder of uploads that are being worked on.
    pub spool_dir: PathBuf,
    /// Certificate and key, to speak HTTPS.
    pub tls: Option<Tls>,
    /// Other names of models, such as `whisper-1`.
    pub aliases: BTreeMap<String, String>,
    /// The model that finds turns of live speech; absent is the first that detects speech.
    pub vad_model: Option<String>,
    /// The device, for `/v1/status`.
    pub device: String,
}

/// PEM files for HTTPS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            max_upload_bytes: 512 << 20,
            max_audio_seconds: 4.0 * 3600.0,
            max_text_chars: 100_000,
            max_json_bytes: 16 << 20,
            api_keys: Vec::new(),
            cors_origins: Vec::new(),
            allowed_audio_roots: Vec::new(),
            spool_dir: std::env::temp_dir(),
            tls: None,
            aliases: BTreeMap::new(),
            vad_model: None,
            device: "auto".to_owned(),
        }
    }
}
