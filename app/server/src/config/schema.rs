//! The JSON schema of the configuration file, for editors.

use super::Config;

/// The schema as indented JSON with a line feed at its end.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Config);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_published_schema_is_this_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/server.schema.json");
        let published = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            published == schema(),
            "docs/server.schema.json is not what `audiocpp_server --print-schema` prints"
        );
    }

    #[test]
    fn it_knows_every_key_and_no_other() {
        let schema: Value = serde_json::from_str(&schema()).unwrap();
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["properties"]["port"]["default"], 8080);
        assert_eq!(schema["required"], serde_json::json!(["models"]));
        let model = &schema["$defs"]["ModelConfig"];
        assert_eq!(
            model["required"],
            serde_json::json!(["id", "path", "family"])
        );
        assert_eq!(model["properties"]["workers"]["minimum"], 1);
        assert!(model["properties"]["voice_presets"]["additionalProperties"].is_object());
    }
}
