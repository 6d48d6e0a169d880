//! The keys that are about the server and not about one model.

use std::path::Path;

use audiocpp::engine::Task;

use super::{Findings, ignored};
use crate::config::{Config, Origins, resolve};

/// Checks them all.
pub fn check(config: &Config, file: &Path, findings: &mut Findings) {
    let Findings { errors, warnings } = findings;
    numbers(config, errors);
    access(config, file, errors, warnings);
    names(config, errors);
    if config.model_spec_override.is_some() {
        warnings.push(ignored("model_spec_override"));
    }
    if let Err(message) = config.device() {
        errors.push(format!("device: {message}"));
    }
    let spool = config
        .spool_dir
        .as_ref()
        .map(|folder| resolve(file, folder));
    for folder in spool.iter().filter(|folder| !folder.is_dir()) {
        errors.push(format!("spool_dir: no folder at {}", folder.display()));
    }
}

fn numbers(config: &Config, errors: &mut Vec<String>) {
    if config.port == 0 {
        errors.push("port: 0, wanted 1 to 65535".into());
    }
    if let Some(port) = config.wyoming_port
        && (port == 0 || port == config.port)
    {
        errors.push(format!(
            "wyoming_port: {port}, wanted another than 0 and `port`"
        ));
    }
    let limits = &config.limits;
    let seconds = limits.audio_seconds;
    if !(seconds.is_finite() && seconds > 0.0) {
        errors.push(format!(
            "limits.audio_seconds: {seconds}, wanted more than 0"
        ));
    }
    for (key, is_zero) in [
        ("threads", config.threads == Some(0)),
        ("memory_budget_mb", config.memory_budget_mb == Some(0)),
        ("load_timeout_seconds", config.load_timeout_seconds == 0),
        ("limits.upload_bytes", limits.upload_bytes == 0),
        ("limits.text_chars", limits.text_chars == 0),
        ("limits.json_bytes", limits.json_bytes == 0),
    ] {
        if is_zero {
            errors.push(format!("{key}: 0, wanted at least 1"));
        }
    }
}

/// Who may ask, and for which files.
fn access(config: &Config, file: &Path, errors: &mut Vec<String>, warnings: &mut Vec<String>) {
    match &config.cors_origins {
        Origins::Text(text) if !matches!(text.as_str(), "" | "*") => {
            errors.push(format!(
                "cors_origins: `{text}`, wanted \"\", \"*\" or a list of origins"
            ));
        }
        _ => {}
    }
    match config.keys(file) {
        Err(message) => errors.push(message),
        Ok(keys) if keys.is_empty() && !config.host.is_loopback() => {
            let host = config.host;
            warnings.push(format!(
                "host: {host} is open to the network, and there are no api_keys"
            ));
        }
        Ok(_) => {}
    }
    for (index, root) in config.allowed_audio_roots.iter().enumerate() {
        let root = resolve(file, root);
        if !root.is_dir() {
            let root = root.display();
            errors.push(format!("allowed_audio_roots[{index}]: no folder at {root}"));
        }
    }
    if let Some(tls) = &config.tls {
        for (key, path) in [("certificate", &tls.certificate), ("key", &tls.key)] {
            let path = resolve(file, path);
            if !path.is_file() {
                errors.push(format!("tls.{key}: no file at {}", path.display()));
            }
        }
    }
}

/// Other names must lead to a model and hide none.
fn names(config: &Config, errors: &mut Vec<String>) {
    let ids = || config.models.iter().map(|model| model.id.as_str());
    if let Some(id) = &config.vad_model {
        let found = config.models.iter().find(|model| model.id == *id);
        if found.is_none_or(|model| model.task != Task::Vad.name()) {
            errors.push(format!("vad_model: there is no model `{id}` of task vad"));
        }
    }
    for (alias, id) in &config.aliases.0 {
        if ids().any(|known| known == alias) {
            errors.push(format!("aliases.{alias}: there is a model of this name"));
        }
        if ids().all(|known| known != id) {
            let names: Vec<&str> = ids().collect();
            let hint = audiocpp::engine::hint(id, names);
            errors.push(format!("aliases.{alias}: there is no model `{id}`{hint}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn errors(keys: &str) -> Vec<String> {
        let model = r#""models":[{"id":"a","path":"p","family":"f"}]"#;
        let config = parse(&format!("{{{keys}{model}}}")).unwrap();
        let mut findings = Findings::default();
        check(&config, Path::new("/no/such/server.json"), &mut findings);
        findings.errors
    }

    #[test]
    fn every_key_of_the_server_is_checked() {
        assert_eq!(errors(""), [""; 0]);
        for (keys, wanted) in [
            (r#""wyoming_port":8080,"#, "wyoming_port: 8080"),
            (r#""memory_budget_mb":0,"#, "memory_budget_mb: 0"),
            (
                r#""limits":{"audio_seconds":-1},"#,
                "limits.audio_seconds: -1",
            ),
            (r#""limits":{"json_bytes":0},"#, "limits.json_bytes: 0"),
            (r#""load_timeout_seconds":0,"#, "load_timeout_seconds: 0"),
            (
                r#""tls":{"certificate":"c","key":"k"},"#,
                "tls.certificate: no file at /no/such/c",
            ),
            (
                r#""allowed_audio_roots":["x"],"#,
                "allowed_audio_roots[0]: no folder at /no/such/x",
            ),
            (r#""api_keys_file":"k","#, "api_keys_file: /no/such/k"),
            (r#""spool_dir":"s","#, "spool_dir: no folder at /no/such/s"),
            (
                r#""vad_model":"a","#,
                "vad_model: there is no model `a` of task vad",
            ),
            (
                r#""aliases":{"b":"c"},"#,
                "aliases.b: there is no model `c`",
            ),
            (
                r#""aliases":{"a":"a"},"#,
                "aliases.a: there is a model of this name",
            ),
        ] {
            let found = errors(keys);
            assert!(found[0].starts_with(wanted), "{wanted}: {found:?}");
        }
    }

    #[test]
    fn an_open_door_without_keys_is_a_warning() {
        let mut config = Config::without_file();
        let warned = |config: &Config| {
            let mut findings = Findings::default();
            check(config, Path::new(""), &mut findings);
            findings.warnings.join("\n").contains("open to the network")
        };
        assert!(!warned(&config));
        config.host = [0, 0, 0, 0].into();
        assert!(warned(&config));
        config.api_keys.push("k".into());
        assert!(!warned(&config));
    }
}
