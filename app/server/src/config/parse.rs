//! Reading the file, with errors that name the place and the nearest key.

use super::Config;

/// Reads the text of a configuration file. The error is one line: the place in the file, the path
/// of the key (`models[1].task`), what was found, and the nearest known key.
///
/// # Errors
/// That line.
pub fn parse(text: &str) -> Result<Config, String> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let config = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let message = with_hint(&error.into_inner().to_string());
        if path == "." {
            message
        } else {
            format!("{path}: {message}")
        }
    })?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(config)
}

/// Shortens serde's list of every known key to the nearest one, where there is one.
fn with_hint(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let wanted = if message.starts_with("unknown field") {
        "key"
    } else {
        "value"
    };
    let is_unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    if let [found, known @ ..] = quoted.as_slice()
        && is_unknown
        && let Some(near) = audiocpp::engine::nearest(found, known.iter().copied())
    {
        let place = message
            .rsplit_once(" at line ")
            .map_or("", |(_, place)| place);
        let place = if place.is_empty() {
            String::new()
        } else {
            format!(" at line {place}")
        };
        return format!("unknown {wanted} `{found}`, did you mean `{near}`?{place}");
    }
    message.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{DefaultVoice, Device, Limits, Mode, Scalar};

    const WHOLE: &str = r#"{
        "host": "0.0.0.0", "port": 9000, "backend": "hip", "device": 1, "threads": 4,
        "lazy_load": true, "cors_origins": "*", "busy_timeout_ms": 0,
        "$schema": "server.schema.json", "pull": true, "queue_length": 4, "idle_unload_seconds": 9,
        "memory_budget_mb": 4000, "watchdog_seconds": 0, "load_timeout_seconds": 7,
        "drain_seconds": 3, "limits": {"upload_bytes": 10, "audio_seconds": 1.5},
        "api_keys": ["k"], "api_keys_file": "keys", "allowed_audio_roots": ["sound"],
        "tls": {"certificate": "c.pem", "key": "k.pem"}, "wyoming_port": 10300,
        "aliases": {"whisper-1": "a"}, "vad_model": "v", "spool_dir": "spool",
        "model_spec_override": "specs",
        "models": [{
            "id": "a", "path": "m/a", "family": "whisper", "task": "asr", "mode": "offline",
            "lazy": false, "busy_timeout_ms": 5, "config": "c", "weight": "f16",
            "load_options": {"x": 1}, "session_options": {"y": true, "z": "w", "f": 0.5},
            "voice_presets": {"v": {"voice_id": "1", "voice_ref": "r.wav", "reference_text": "t"}},
            "default_voice_preset": "v", "model_spec_override": "s",
            "pull": false, "backend": "cpu", "device": 0, "threads": 1, "workers": 2,
            "queue_length": 1, "idle_unload_seconds": 0, "watchdog_seconds": 5, "vad": "silero-vad"
        }]
    }"#;

    #[test]
    fn every_key_is_read() {
        let config = parse(WHOLE).unwrap();
        assert_eq!(
            (config.port, config.device.clone()),
            (9000, Some(Device::Number(1)))
        );
        assert_eq!(config.device().unwrap(), "hip:1");
        let model = &config.models[0];
        assert_eq!(model.load_options.0["x"], Scalar::Int(1));
        assert_eq!(model.session_options.0["f"].to_string(), "0.5");
        assert_eq!(
            model.default_voice_preset,
            Some(DefaultVoice::Name("v".into()))
        );
        assert_eq!((model.workers, model.queue_length), (2, Some(1)));
        assert_eq!(config.device_of(model).unwrap(), "cpu");
        assert_eq!(config.limits.audio_seconds, 1.5);
        assert_eq!(config.limits.text_chars, Limits::default().text_chars);
        assert_eq!(config.aliases.0["whisper-1"], "a");
        assert_eq!(config.cors_origins.list(), ["*"]);
        let least = parse(r#"{"models":[{"id":"a","path":"p","family":"f"}]}"#).unwrap();
        assert_eq!((least.port, least.busy_timeout_ms), (8080, 300_000));
        assert_eq!(least.device().unwrap(), "auto");
        assert!(least.host.is_loopback());
        assert_eq!(
            (least.models[0].task.as_str(), least.models[0].mode),
            ("tts", Mode::Offline)
        );
    }

    #[test]
    fn wrong_keys_and_types_are_named_with_their_path() {
        let error = |from: &str, to: &str| parse(&WHOLE.replace(from, to)).unwrap_err();
        let line = error("\"port\"", "\"prot\"");
        assert!(
            line.starts_with("prot: unknown key `prot`, did you mean `port`? at line 2"),
            "{line}"
        );
        let line = error("\"task\"", "\"taks\"");
        assert!(
            line.starts_with("models[0].taks: unknown key `taks`, did you mean `task`"),
            "{line}"
        );
        let line = error("\"mode\": \"offline\"", "\"mode\": \"ofline\"");
        assert!(
            line.contains("models[0].mode: unknown value `ofline`, did you mean `offline`"),
            "{line}"
        );
        let line = error("\"task\": \"asr\"", "\"task\": 5");
        assert!(
            line.starts_with("models[0].task: invalid type: integer `5`"),
            "{line}"
        );
        let line = error("\"voice_ref\"", "\"voice_reff\"");
        assert!(
            line.contains("models[0].voice_presets.v.voice_reff: unknown key"),
            "{line}"
        );
        let line = error(
            "\"default_voice_preset\": \"v\"",
            "\"default_voice_preset\": {\"voice\": 1}",
        );
        assert!(
            line.starts_with("models[0].default_voice_preset: unknown key `voice`"),
            "{line}"
        );
        let line = error("\"lazy\": false", "\"lazy\": false, \"lazy\": true");
        assert!(line.contains("duplicate field"), "{line}");
        let line = error("\"x\": 1", "\"x\": 1, \"x\": 2");
        assert!(line.contains("`x` is there twice"), "{line}");
        assert!(
            parse(&format!("{WHOLE} x"))
                .unwrap_err()
                .contains("trailing")
        );
        assert!(parse("{}").unwrap_err().contains("missing field `models`"));
    }
}
