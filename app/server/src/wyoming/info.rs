//! What is offered (`info`), and which model and voice a request means.
//!
//! Home Assistant looks at the first program of each kind alone, so all models that recognise speech
//! are one program, and the voices of all models that speak are another.

use audiocpp::engine::{Error, Task, VoiceInfo, hint};
use serde_json::{Value, json};

use super::frame::Event;
use crate::job::{ModelStatus, Refusal};

/// The name of both programs.
const PROGRAM: &str = "audiocpp";

/// A voice that can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its name here: the model's if that has no other voice, else `model/voice`.
    pub name: String,
    /// The name for people.
    pub title: String,
    /// The model that speaks with it.
    pub model: String,
    /// Its name in the model; `None` is the model's own choice.
    pub voice: Option<String>,
    /// Language tags (`en-US`).
    pub languages: Vec<String>,
}

/// What a client says about the voice that it wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// A voice or model.
    pub name: Option<String>,
    /// A voice of the model `name`.
    pub speaker: Option<String>,
    /// A language tag.
    pub language: Option<String>,
}

impl Wish {
    /// The field `voice` of `event`.
    pub fn of(event: &Event) -> Wish {
        let voice = event.data.get("voice");
        let field = |name: &str| {
            let value = voice?.get(name)?.as_str()?.trim();
            (!value.is_empty()).then(|| value.to_owned())
        };
        Wish {
            name: field("name"),
            speaker: field("speaker"),
            language: field("language"),
        }
    }
}

/// Whether models of this task turn text into speech.
pub fn speaks(task: Task) -> bool {
    matches!(task, Task::Tts | Task::Clon | Task::Vdes)
}

/// Whether a model says in `info` what cannot be known before it was loaded once.
pub fn wants_loading(model: &ModelStatus) -> bool {
    model.info.is_none() && (speaks(model.task) || model.task == Task::Asr)
}

/// The answer to `describe`.
pub fn info(models: &[ModelStatus]) -> Event {
    let hears: Vec<Value> = recognisers(models).map(recogniser).collect();
    let voices: Vec<Value> = offers(models).iter().map(voice).collect();
    let program = |part: &str, items: Vec<Value>, streaming: &str| -> Vec<Value> {
        if items.is_empty() {
            return Vec::new();
        }
        let mut program = artifact(PROGRAM, "audiocpp", "Speech models on this server");
        program[part] = items.into();
        program[streaming] = true.into();
        vec![program]
    };
    Event::new(
        "info",
        json!({
            "asr": program("models", hears, "supports_transcript_streaming"),
            "tts": program("voices", voices, "supports_synthesize_streaming"),
            "handle": [], "intent": [], "wake": [], "mic": [], "snd": [],
        }),
    )
}

fn artifact(name: &str, maker: &str, description: &str) -> Value {
    json!({
        "name": name,
        "description": description,
        "attribution": {"name": maker, "url": ""},
        "installed": true,
        "version": env!("CARGO_PKG_VERSION"),
    })
}

fn recognisers(models: &[ModelStatus]) -> impl Iterator<Item = &ModelStatus> {
    models.iter().filter(|model| model.task == Task::Asr)
}

fn recogniser(model: &ModelStatus) -> Value {
    let mut item = artifact(&model.id, &model.family, &model.id);
    item["languages"] = json!(languages(model));
    item
}

fn voice(offer: &Offer) -> Value {
    let mut item = artifact(&offer.name, &offer.model, &offer.title);
    item["languages"] = json!(offer.languages);
    item
}

fn languages(model: &ModelStatus) -> &[String] {
    model.info.as_ref().map_or(&[], |info| &info.languages)
}

/// All voices of all models that speak, in the order of the models; a model's default is its first.
pub fn offers(models: &[ModelStatus]) -> Vec<Offer> {
    models
        .iter()
        .filter(|model| speaks(model.task))
        .flat_map(offers_of)
        .collect()
}

fn offers_of(model: &ModelStatus) -> Vec<Offer> {
    let tags = |codes: &[String]| codes.iter().map(|code| tag(code)).collect();
    if model.voices.is_empty() {
        return vec![Offer {
            name: model.id.clone(),
            title: model.id.clone(),
            model: model.id.clone(),
            voice: model.default_voice.clone(),
            languages: tags(languages(model)),
        }];
    }
    let alone = model.voices.len() == 1;
    let offer = |voice: &VoiceInfo| Offer {
        name: match alone {
            true => model.id.clone(),
            false => format!("{}/{}", model.id, voice.id),
        },
        title: match alone {
            true => format!("{} ({})", voice.name, model.id),
            false => format!("{} ({}/{})", voice.name, model.id, voice.id),
        },
        model: model.id.clone(),
        voice: Some(voice.id.clone()),
        languages: match voice.language.is_empty() {
            true => tags(languages(model)),
            false => vec![tag(&voice.language)],
        },
    };
    let mut offers: Vec<Offer> = model.voices.iter().map(offer).collect();
    offers.sort_by_key(|offer| offer.voice != model.default_voice);
    offers
}

/// A language code with its region in capitals: `en-us` is `en-US`.
fn tag(code: &str) -> String {
    match code.split_once(['-', '_']) {
        Some((language, region)) if region.len() == 2 => {
            format!("{}-{}", language.to_lowercase(), region.to_uppercase())
        }
        _ => code.to_owned(),
    }
}

/// The language without its region: `en` of `en_US`.
pub fn primary(code: &str) -> String {
    let end = code.find(['-', '_']).unwrap_or(code.len());
    code[..end].to_lowercase()
}

/// The model that recognises: the one of that name, else the first that knows the language, else
/// the first.
///
/// # Errors
/// No such model, or none at all.
pub fn pick_recogniser(
    models: &[ModelStatus],
    name: Option<&str>,
    language: Option<&str>,
) -> Result<String, Refusal> {
    let all: Vec<&ModelStatus> = recognisers(models).collect();
    let Some(first) = all.first() else {
        return Err(none_of("recognises speech"));
    };
    if let Some(name) = name.filter(|name| *name != PROGRAM) {
        let found = all.iter().find(|model| model.id == name);
        let names = all.iter().map(|model| model.id.as_str());
        return found.map_or_else(
            || Err(unknown("model", name, names)),
            |found| Ok(found.id.clone()),
        );
    }
    let knows = |model: &&&ModelStatus| {
        let wanted = language.map(primary);
        wanted.is_some_and(|wanted| languages(model).iter().any(|own| primary(own) == wanted))
    };
    Ok(all.iter().find(knows).unwrap_or(first).id.clone())
}

/// The voice that `wish` means; without a name the first of its language, else the very first.
///
/// # Errors
/// No such voice, or no model that speaks.
pub fn pick_voice(models: &[ModelStatus], wish: &Wish) -> Result<Offer, Refusal> {
    let offers = offers(models);
    let Some(first) = offers.first() else {
        return Err(none_of("speaks"));
    };
    if let Some(name) = wish.name.as_deref().filter(|name| *name != PROGRAM) {
        let full = wish.speaker.as_ref().map(|voice| format!("{name}/{voice}"));
        let ways: [&dyn Fn(&Offer) -> bool; 4] = [
            &|offer| full.as_ref() == Some(&offer.name),
            &|offer| offer.name == name,
            &|offer| offer.voice.as_deref() == Some(name),
            &|offer| offer.model == name,
        ];
        let found = ways.iter().find_map(|fits| offers.iter().find(|o| fits(o)));
        let names = offers.iter().map(|offer| offer.name.as_str());
        return found.cloned().ok_or_else(|| unknown("voice", name, names));
    }
    let language = wish.language.as_deref().unwrap_or_default();
    let exact = |offer: &&Offer| offer.languages.contains(&tag(language));
    let near = |offer: &&Offer| {
        let mut own = offer.languages.iter();
        own.any(|own| primary(own) == primary(language))
    };
    let found = offers.iter().find(exact);
    Ok(found
        .or_else(|| offers.iter().find(near))
        .unwrap_or(first)
        .clone())
}

fn none_of(what: &str) -> Refusal {
    Refusal::Job(Error::not_found(format!(
        "no model that {what} is configured on this server"
    )))
}

fn unknown<'a>(
    what: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Refusal {
    Refusal::Job(Error::not_found(format!(
        "there is no {what} `{name}`{}",
        hint(name, known)
    )))
}

#[cfg(test)]
mod tests {
    use super::super::test_runner::{recogniser, speaker};
    use super::*;

    fn models() -> Vec<ModelStatus> {
        let mut kokoro = speaker("kokoro", &[("af_heart", "en-us"), ("ff_siwis", "fr-fr")]);
        kokoro.default_voice = Some("ff_siwis".to_owned());
        vec![
            recogniser("tiny.en", &["en"]),
            recogniser("base", &["en", "de", "ja"]),
            kokoro,
            speaker("joe", &[("joe", "en-us")]),
        ]
    }

    #[test]
    fn one_program_of_each_kind_lists_everything() {
        let info = info(&models()).data;
        let names = |kind: &str, part: &str| -> Vec<String> {
            let items = info[kind][0][part].as_array().unwrap();
            let name = |item: &Value| item["name"].as_str().unwrap().to_owned();
            items.iter().map(name).collect()
        };
        assert_eq!(names("asr", "models"), ["tiny.en", "base"]);
        assert_eq!(
            names("tts", "voices"),
            ["kokoro/ff_siwis", "kokoro/af_heart", "joe"]
        );
        assert_eq!(info["tts"][0]["voices"][1]["languages"], json!(["en-US"]));
        assert_eq!(info["asr"][0]["supports_transcript_streaming"], true);
        assert_eq!(super::info(&[]).data["asr"], json!([]));
    }

    #[test]
    fn a_recogniser_is_found_by_name_then_language_then_order() {
        let pick =
            |name, language| pick_recogniser(&models(), name, language).map_err(|e| e.to_string());
        assert_eq!(pick(Some("base"), Some("en")).unwrap(), "base");
        assert_eq!(pick(None, Some("de-DE")).unwrap(), "base");
        assert_eq!(pick(None, Some("sw")).unwrap(), "tiny.en");
        assert_eq!(pick(None, None).unwrap(), "tiny.en");
        let error = pick(Some("bass"), None).unwrap_err();
        assert!(error.contains("did you mean `base`"), "{error}");
    }

    #[test]
    fn a_voice_is_found_by_any_of_its_names() {
        let pick = |name: Option<&str>, speaker: Option<&str>, language: Option<&str>| {
            let wish = Wish {
                name: name.map(str::to_owned),
                speaker: speaker.map(str::to_owned),
                language: language.map(str::to_owned),
            };
            pick_voice(&models(), &wish).map(|offer| offer.name)
        };
        assert_eq!(pick(None, None, None).unwrap(), "kokoro/ff_siwis");
        assert_eq!(pick(None, None, Some("en_US")).unwrap(), "kokoro/af_heart");
        assert_eq!(pick(None, None, Some("fr")).unwrap(), "kokoro/ff_siwis");
        assert_eq!(
            pick(Some("af_heart"), None, None).unwrap(),
            "kokoro/af_heart"
        );
        assert_eq!(pick(Some("joe"), None, None).unwrap(), "joe");
        assert_eq!(pick(Some("kokoro"), None, None).unwrap(), "kokoro/ff_siwis");
        assert_eq!(
            pick(Some("kokoro"), Some("af_heart"), None).unwrap(),
            "kokoro/af_heart"
        );
        let error = pick(Some("af_haert"), None, None).unwrap_err();
        assert!(error.to_string().contains("no voice `af_haert`"), "{error}");
    }
}
