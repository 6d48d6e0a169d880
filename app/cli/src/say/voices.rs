//! `voices`: what a model can speak with.

use audiocpp::engine::{CancelToken, Registry, Task, VoiceInfo};

use super::{
    args::{Say, SayArgs, Voices},
    load,
};
use crate::{
    failure::{Failure, Outcome},
    model::Choice,
    models::{print_json, table},
    output::print,
    progress::Progress,
};

/// What samples say, by language.
const SAMPLES: [(&str, &str); 7] = [
    (
        "en",
        "The quick brown fox jumps over the lazy dog, and the dog does not mind at all.",
    ),
    (
        "de",
        "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.",
    ),
    (
        "fr",
        "Portez ce vieux whisky au juge blond qui fume sur son île intérieure.",
    ),
    (
        "es",
        "El veloz murciélago hindú comía feliz cardillo y kiwi.",
    ),
    (
        "it",
        "Ma la volpe, col suo balzo, ha raggiunto il quieto Fido.",
    ),
    (
        "pt",
        "À noite, vovô Kowalsky vê o ímã cair no pé do pinguim queixoso.",
    ),
    ("nl", "Pa's wijze lynx bezag vroom het fikse aquaduct."),
];

/// Lists the voices of a model, or speaks a sentence with each.
pub fn run(args: &Voices, registry: &Registry, cancel: &CancelToken) -> Outcome {
    let choice = Choice::new(&args.model, Task::Tts, registry)?;
    let progress = Progress::new();
    let context = progress.context(cancel);
    let loaded = load(&choice, Task::Tts, &progress, &context)?;
    let voices = loaded.model.voices();
    if voices.is_empty() {
        return Err(Failure::usage("this model has no voices of its own"));
    }
    if let Some(folder) = &args.samples {
        drop(loaded);
        for voice in &voices {
            let say = Say {
                text: Some(sample(voice).to_owned()),
                model: args.model.clone(),
                request: SayArgs {
                    voice: Some(voice.id.clone()),
                    out: Some(folder.join(format!("{}.wav", voice.id.replace(['/', '\\'], "_")))),
                    seed: Some(0),
                    ..SayArgs::default()
                },
            };
            std::fs::create_dir_all(folder)
                .map_err(|error| Failure::usage(format!("{}: {error}", folder.display())))?;
            super::run(&say, registry, cancel)?;
        }
    }
    if args.json {
        return print_json(&serde_json::json!(voices));
    }
    let mut rows = vec![["VOICE", "NAME", "LANGUAGE", "GENDER"].map(str::to_owned)];
    rows.extend(voices.into_iter().map(|voice| {
        [
            voice.id,
            voice.name,
            voice.language,
            voice.gender.unwrap_or_else(|| "-".into()),
        ]
    }));
    print(&table(&rows))
}

fn sample(voice: &VoiceInfo) -> &'static str {
    let code = audiocpp::text::languages::code(&voice.language);
    let found = SAMPLES.iter().find(|(language, _)| Some(*language) == code);
    found.map_or(SAMPLES[0].1, |(_, text)| text)
}
