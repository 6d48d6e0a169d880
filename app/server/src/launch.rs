//! From the command line to a running server, and to its end.

use std::{
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use audiocpp::engine::Registry;

use crate::{
    check::{Findings, check},
    config::{self, Config, Plan, plan},
    http, wyoming,
};

/// A configuration that was read and checked.
pub struct Checked {
    /// The configuration.
    pub config: Config,
    /// Where it was read from; empty if there was no file.
    pub file: PathBuf,
    /// What is ignored or doubtful, one line each.
    pub warnings: Vec<String>,
}

/// The flags that win over the configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flags {
    /// Address to listen on.
    pub host: Option<IpAddr>,
    /// Port to listen on.
    pub port: Option<u16>,
}

/// Reads and checks the configuration in `file`; without a file it is every installed model, loaded
/// on demand, for this machine only.
///
/// # Errors
/// Every fault, one line each.
pub fn read(
    file: Option<&Path>,
    flags: Flags,
    registry: &Registry,
) -> Result<Checked, Vec<String>> {
    let one = |line: String| vec![line];
    let mut config = match file {
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| one(error.to_string()))?;
            config::parse(&text).map_err(one)?
        }
        None => {
            let mut config = Config::without_file();
            config.models = plan::installed(registry).map_err(|error| one(error.message))?;
            if config.models.is_empty() {
                let fix = "no model is installed: audiocpp_cli models pull whisper-base";
                return Err(one(fix.into()));
            }
            config
        }
    };
    config.host = flags.host.unwrap_or(config.host);
    config.port = flags.port.unwrap_or(config.port);
    let file = file.map(Path::to_owned).unwrap_or_default();
    let Findings { errors, warnings } = check(&config, &file, registry);
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok(Checked {
        config,
        file,
        warnings,
    })
}

impl Checked {
    /// What is to be served.
    ///
    /// # Errors
    /// A file that went away since it was checked.
    pub fn plan(&self, registry: &Registry) -> anyhow::Result<Plan> {
        Plan::new(&self.config, &self.file, registry).map_err(|error| anyhow!(error.message))
    }

    /// The settings of the HTTP side.
    ///
    /// # Errors
    /// A file with keys that went away since it was checked.
    pub fn http_settings(&self) -> anyhow::Result<http::Settings> {
        let (config, limits) = (&self.config, &self.config.limits);
        let at = |path: &PathBuf| config::resolve(&self.file, path);
        let defaults = http::Settings::default();
        Ok(http::Settings {
            max_upload_bytes: limits.upload_bytes,
            max_audio_seconds: limits.audio_seconds,
            max_text_chars: limits.text_chars,
            max_json_bytes: limits.json_bytes,
            api_keys: config.keys(&self.file).map_err(|line| anyhow!(line))?,
            cors_origins: config.cors_origins.list(),
            allowed_audio_roots: config.allowed_audio_roots.iter().map(at).collect(),
            spool_dir: config.spool_dir.as_ref().map_or(defaults.spool_dir, at),
            tls: config.tls.as_ref().map(|tls| http::Tls {
                certificate: at(&tls.certificate),
                key: at(&tls.key),
            }),
            aliases: config.aliases.0.clone(),
            vad_model: config.vad_model.clone(),
            device: config.device().map_err(|line| anyhow!(line))?,
        })
    }

    /// The address to listen on.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.config.host, self.config.port)
    }

    /// The address and the settings of the Wyoming side, if it is wanted.
    pub fn wyoming(&self) -> Option<(SocketAddr, wyoming::Settings)> {
        let config = &self.config;
        let usual = wyoming::Settings::default();
        let spool = config.spool_dir.as_ref();
        let settings = wyoming::Settings {
            max_audio_seconds: config.limits.audio_seconds,
            max_text_chars: config.limits.text_chars,
            spool_dir: spool.map_or_else(
                || usual.spool_dir.clone(),
                |path| config::resolve(&self.file, path),
            ),
            ..usual
        };
        let port = config.wyoming_port?;
        Some((SocketAddr::new(config.host, port), settings))
    }

    /// What the server would do, one line for the address and each model.
    ///
    /// # Errors
    /// As [`Checked::plan`].
    pub fn summary(&self, registry: &Registry) -> anyhow::Result<String> {
        let scheme = if self.config.tls.is_some() {
            "https"
        } else {
            "http"
        };
        let mut text = format!("address {scheme}://{}\n", self.address());
        if let Some((address, _)) = self.wyoming() {
            text.push_str(&format!("wyoming tcp://{address}\n"));
        }
        if let Some(mb) = self.config.memory_budget_mb {
            text.push_str(&format!("memory up to {mb} MB\n"));
        }
        for model in &self.plan(registry)?.models {
            let spec = &model.spec;
            let when = if model.lazy { "on demand" } else { "at start" };
            let threads = spec.load.threads.map_or("all".into(), |n| n.to_string());
            let wait = model.wait.map_or(0, |wait| wait.as_millis());
            let idle = model
                .idle_unload
                .map_or("never".into(), |idle| format!("after {} s", idle.as_secs()));
            text.push_str(&format!(
                "model {}: {} {} from {}, weights {}, device {}, threads {threads}, workers {}, \
                 loaded {when}, unloaded {idle}, waits {wait} ms, queue {}\n",
                spec.id,
                spec.family,
                spec.task,
                spec.package.shown(),
                spec.load.weight_type.as_deref().unwrap_or("native"),
                spec.load.device,
                model.workers,
                model.queue_length,
            ));
        }
        Ok(text)
    }
}

/// Waits until the system asks the program to end: Ctrl-C, or on Unix SIGTERM.
///
/// # Errors
/// Signals cannot be watched.
pub async fn asked_to_end() -> anyhow::Result<()> {
    tokio::select! {
        asked = tokio::signal::ctrl_c() => asked.context("cannot watch for Ctrl-C"),
        asked = terminated() => asked.context("cannot watch for SIGTERM"),
    }
}

#[cfg(unix)]
async fn terminated() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    signal(SignalKind::terminate())?.recv().await;
    Ok(())
}

#[cfg(not(unix))]
async fn terminated() -> std::io::Result<()> {
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_win_over_the_file_and_its_faults_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("server.json");
        let text = r#"{"port": 9000, "limits": {"upload_bytes": 77}, "aliases": {"whisper-1": "a"},
            "allowed_audio_roots": ["."], "models": [
            {"id": "a", "path": "whisper-base", "family": "whisper", "task": "asr"}]}"#;
        std::fs::write(&file, text).unwrap();
        let registry = audiocpp_models::registry();
        let flags = Flags {
            host: Some([0, 0, 0, 0].into()),
            port: None,
        };
        let checked = read(Some(&file), flags, &registry).unwrap();
        assert_eq!(checked.address().to_string(), "0.0.0.0:9000");
        assert_eq!(checked.warnings.len(), 1);
        let settings = checked.http_settings().unwrap();
        assert_eq!(settings.max_upload_bytes, 77);
        assert_eq!(settings.aliases["whisper-1"], "a");
        assert_eq!(settings.allowed_audio_roots, [folder.path().join(".")]);
        let summary = checked.summary(&registry).unwrap();
        assert!(
            summary.contains("model a: whisper asr from whisper-base, weights native, device auto"),
            "{summary}"
        );
        assert!(checked.wyoming().is_none());
        let zero = Flags {
            port: Some(0),
            ..Flags::default()
        };
        let errors = read(Some(&file), zero, &registry).err().unwrap();
        assert_eq!(errors, ["port: 0, wanted 1 to 65535"]);
        let missing = folder.path().join("none.json");
        assert!(read(Some(&missing), flags, &registry).is_err());
    }
}
