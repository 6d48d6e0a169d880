//! Text that arrives in pieces, and sound that leaves in pieces.

use audiocpp::{
    audio::{Audio, WavFormat},
    engine::{Error, ErrorClass},
    text::sentences::sentences,
};
use serde_json::{Value, json};

use super::{
    frame::Event,
    info::{Offer, primary},
};

/// Samples in one event; few enough for a player to begin at once.
const CHUNK: usize = 4096;

/// Text without an end of a sentence is spoken once it has this many characters.
const LONGEST_WAIT: usize = 1000;

/// Refuses text that is not plain: tags would be read out.
///
/// # Errors
/// `text_format` is there and not `text`.
pub fn check_plain(event: &Event) -> Result<(), Error> {
    match event.data.get("text_format") {
        None | Some(Value::Null) => Ok(()),
        Some(format) if format == "text" => Ok(()),
        Some(format) => Err(Error::unsupported(format!(
            "text_format {format} is not read; send plain text"
        ))),
    }
}

/// An error if `count` characters are more than `limit`.
///
/// # Errors
/// `TooLarge`.
pub fn check_length(count: usize, limit: usize) -> Result<(), Error> {
    if count <= limit {
        return Ok(());
    }
    Err(Error::new(
        ErrorClass::TooLarge,
        format!("a text of {count} characters, the limit is {limit}"),
    ))
}

/// Whether there is anything in `text` that can be spoken.
pub fn is_speakable(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

/// Text that arrives in pieces, given out in whole sentences.
#[derive(Debug)]
pub struct TextStream {
    /// The voice that speaks it.
    pub offer: Offer,
    /// Characters so far.
    pub count: usize,
    pending: String,
}

impl TextStream {
    /// No text yet.
    pub fn new(offer: Offer) -> Self {
        TextStream {
            offer,
            count: 0,
            pending: String::new(),
        }
    }

    /// Adds a piece, and gives back the sentences that are now complete: all but the last, since
    /// only what follows tells whether a point ends a sentence.
    pub fn push(&mut self, piece: &str) -> Option<String> {
        self.count += piece.chars().count();
        self.pending.push_str(piece);
        let language = self.offer.languages.first();
        let language = language.map_or_else(|| "en".to_owned(), |tag| primary(tag));
        let found = sentences(&self.pending, &language);
        let end = match found.as_slice() {
            [.., _, last] => last.text.start,
            _ if self.pending.chars().count() > LONGEST_WAIT => {
                let blank = self.pending.rfind(char::is_whitespace);
                blank.unwrap_or(self.pending.len())
            }
            _ => return None,
        };
        let rest = self.pending.split_off(end);
        let ready = std::mem::replace(&mut self.pending, rest);
        is_speakable(&ready).then_some(ready)
    }

    /// The text that is left.
    pub fn finish(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.pending);
        is_speakable(&rest).then_some(rest)
    }
}

/// Turns sound into events between one `audio-start` and one `audio-stop`.
#[derive(Debug, Default)]
pub struct SoundStream {
    layout: Option<(u32, u16)>,
}

impl SoundStream {
    /// The events of `audio`, as 16-bit samples; a change of rate begins a new stretch.
    pub fn push(&mut self, audio: &Audio) -> Vec<Event> {
        let mut events = Vec::new();
        if audio.samples.is_empty() {
            return events;
        }
        let layout = (audio.rate, audio.channels);
        if self.layout != Some(layout) {
            if self.layout.is_some() {
                events.push(Event::new("audio-stop", json!({})));
            }
            events.push(Event::new("audio-start", fields(layout)));
            self.layout = Some(layout);
        }
        let frames = CHUNK * usize::from(audio.channels);
        events.extend(audio.samples.chunks(frames).map(|samples| {
            let mut bytes = Vec::with_capacity(samples.len() * 2);
            WavFormat::Pcm16.encode(samples, &mut bytes);
            Event::new("audio-chunk", fields(layout)).with_payload(bytes)
        }));
        events
    }

    /// The events that end it; there is a start even if there was no sound.
    pub fn finish(self) -> Vec<Event> {
        let mut events = Vec::new();
        if self.layout.is_none() {
            events.push(Event::new("audio-start", fields((24_000, 1))));
        }
        events.push(Event::new("audio-stop", json!({})));
        events
    }
}

fn fields((rate, channels): (u32, u16)) -> Value {
    json!({"rate": rate, "width": 2, "channels": channels})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream() -> TextStream {
        TextStream::new(Offer {
            name: "v".into(),
            title: "v".into(),
            model: "m".into(),
            voice: None,
            languages: vec!["en-US".into()],
        })
    }

    #[test]
    fn sentences_are_given_out_once_they_are_over() {
        let mut text = stream();
        let pieces = ["Dr", ". Who is", " here.", " He", " waits! Or", " not"];
        let out: Vec<_> = pieces.iter().filter_map(|p| text.push(p)).collect();
        assert_eq!(out, ["Dr. Who is here. ", "He waits! "]);
        assert_eq!(text.finish().as_deref(), Some("Or not"));
        assert_eq!(text.finish(), None);
        assert_eq!(text.count, 33);
    }

    #[test]
    fn text_without_sentences_does_not_pile_up() {
        let mut text = stream();
        let mut out = String::new();
        for _ in 0..5000 {
            out.extend(text.push("word "));
            assert!(text.pending.len() <= LONGEST_WAIT + 5);
        }
        out.extend(text.finish());
        assert_eq!(out.split_whitespace().count(), 5000);
    }

    #[test]
    fn sound_starts_once_and_stops_once() {
        let mut sound = SoundStream::default();
        let audio = Audio::new(vec![0.5; CHUNK + 1], 22_050, 1).unwrap();
        let mut events = sound.push(&audio);
        events.extend(sound.push(&audio));
        events.extend(sound.finish());
        let kinds: Vec<&str> = events.iter().map(|e| e.kind.as_str()).collect();
        let chunk = "audio-chunk";
        assert_eq!(
            kinds,
            ["audio-start", chunk, chunk, chunk, chunk, "audio-stop"]
        );
        assert_eq!(events[0].data["rate"], 22_050);
        assert_eq!(events[2].payload, 16_384_i16.to_le_bytes());
        let silent = SoundStream::default().finish();
        assert_eq!(silent[0].kind, "audio-start");
        assert_eq!(silent[1].kind, "audio-stop");
    }
}
