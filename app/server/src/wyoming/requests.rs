//! Recognition and synthesis within a conversation.

use audiocpp::engine::{Error, Event as Happened, Segment, SynthesizeRequest, TranscribeRequest};
use serde_json::{Map, Value, json};

use super::{
    connection::Talk,
    fault::Fault,
    frame::Event,
    info::{Offer, Wish, pick_recogniser, pick_voice, primary},
    recording::{Layout, Recording},
    speaking::{SoundStream, TextStream, check_length, check_plain, is_speakable},
};
use crate::job::{Job, Outcome, Reply};

/// Most characters of names and terms that are passed on as a hint to spelling.
const MAX_HINT: usize = 600;

impl Talk {
    /// Keeps what the next recording is to be recognised with.
    pub(super) fn expect_recording(&mut self, event: &Event) {
        let field = |name| event.text(name).map(str::trim).filter(|t| !t.is_empty());
        self.model = field("name").map(str::to_owned);
        self.ask = TranscribeRequest {
            language: field("language").filter(|l| *l != "auto").map(primary),
            prompt: hint(event),
            ..TranscribeRequest::default()
        };
        self.recording = None;
    }

    pub(super) async fn begin_recording(&mut self, event: &Event) -> Result<(), Fault> {
        let settings = &self.shared.settings;
        let layout = Layout::of(event)?;
        let begun = Recording::begin(layout, &settings.spool_dir, settings.max_audio_seconds);
        self.recording = Some(begun.await?);
        Ok(())
    }

    pub(super) async fn record(&mut self, chunk: &Event) -> Result<(), Fault> {
        if self.recording.is_none() {
            self.begin_recording(chunk).await?;
        }
        match &mut self.recording {
            Some(recording) => recording.push(chunk).await,
            None => Ok(()),
        }
    }

    /// Recognises the recording; one without sound is answered with an empty text.
    pub(super) async fn transcribe(&mut self) -> Result<(), Fault> {
        let request = std::mem::take(&mut self.ask);
        let name = self.model.take();
        let asked = request.language.clone();
        let sound = match self.recording.take() {
            Some(recording) => recording.finish().await?,
            None => None,
        };
        let mut begun = false;
        let (mut text, mut language) = (String::new(), asked.clone());
        if let Some(sound) = sound {
            let models = self.shared.runner.models();
            let model = pick_recogniser(&models, name.as_deref(), asked.as_deref())?;
            let job = Job::Transcribe {
                request,
                audio: sound.to_path_buf(),
                speech_only: None,
            };
            let mut run = self.start(&model, job).await?;
            loop {
                match self.next(&mut run).await? {
                    Reply::Event(Happened::Segment(segment)) => {
                        self.send_segment(&segment, !begun, asked.as_deref())
                            .await?;
                        begun = true;
                    }
                    Reply::Done(outcome) => {
                        if let Outcome::Transcript(transcript) = *outcome {
                            text = transcript.text;
                            language = transcript.language.or(language);
                        }
                        break;
                    }
                    Reply::Event(_) | Reply::Failed(_) => {}
                }
            }
        }
        if !begun {
            self.send(&transcript_start(asked.as_deref())).await?;
        }
        let whole = with_language(json!({"text": text}), language.as_deref());
        self.send(&Event::new("transcript", whole)).await?;
        self.send(&Event::new("transcript-stop", json!({}))).await
    }

    async fn send_segment(
        &mut self,
        segment: &Segment,
        first: bool,
        language: Option<&str>,
    ) -> Result<(), Fault> {
        let mut text = segment.text.as_str();
        if first {
            self.send(&transcript_start(language)).await?;
            text = text.trim_start();
        }
        let chunk = Event::new("transcript-chunk", json!({"text": text}));
        self.send(&chunk).await
    }

    /// Speaks the text of `event`.
    pub(super) async fn synthesize(&mut self, event: &Event) -> Result<(), Fault> {
        let text = text_of(event)?;
        check_plain(event)?;
        check_length(text.chars().count(), self.shared.settings.max_text_chars)?;
        let offer = pick_voice(&self.shared.runner.models(), &Wish::of(event))?;
        let mut sound = SoundStream::default();
        if is_speakable(text) {
            self.speak(&offer, text, &mut sound).await?;
        }
        self.send_all(sound.finish()).await
    }

    pub(super) fn begin_reading(&mut self, event: &Event) -> Result<(), Fault> {
        check_plain(event)?;
        let offer = pick_voice(&self.shared.runner.models(), &Wish::of(event))?;
        self.reading = Some((TextStream::new(offer), SoundStream::default()));
        Ok(())
    }

    /// Takes more text, and speaks the sentences that are now complete.
    pub(super) async fn read_on(&mut self, event: &Event) -> Result<(), Fault> {
        let Some((mut text, mut sound)) = self.reading.take() else {
            return Err(Error::bad_input("`synthesize-chunk` before `synthesize-start`").into());
        };
        let ready = text.push(text_of(event)?);
        check_length(text.count, self.shared.settings.max_text_chars)?;
        if let Some(ready) = ready {
            self.speak(&text.offer, &ready, &mut sound).await?;
        }
        self.reading = Some((text, sound));
        Ok(())
    }

    pub(super) async fn end_reading(&mut self) -> Result<(), Fault> {
        let Some((mut text, mut sound)) = self.reading.take() else {
            return Err(Error::bad_input("`synthesize-stop` before `synthesize-start`").into());
        };
        if let Some(rest) = text.finish() {
            self.speak(&text.offer, &rest, &mut sound).await?;
        }
        self.send_all(sound.finish()).await?;
        self.send(&Event::new("synthesize-stopped", json!({})))
            .await
    }

    async fn speak(
        &mut self,
        offer: &Offer,
        text: &str,
        sound: &mut SoundStream,
    ) -> Result<(), Fault> {
        let request = SynthesizeRequest {
            text: text.to_owned(),
            voice: offer.voice.clone(),
            stream: true,
            ..SynthesizeRequest::default()
        };
        let mut run = self
            .start(&offer.model, Job::Synthesize { request })
            .await?;
        loop {
            match self.next(&mut run).await? {
                Reply::Event(Happened::Speech(part)) => {
                    self.send_all(sound.push(&part.audio)).await?;
                }
                Reply::Done(outcome) => {
                    if let Outcome::Speech(speech) = *outcome {
                        self.send_all(sound.push(&speech.audio)).await?;
                    }
                    return Ok(());
                }
                Reply::Event(_) | Reply::Failed(_) => {}
            }
        }
    }

    async fn send_all(&mut self, events: Vec<Event>) -> Result<(), Fault> {
        for event in events {
            self.send(&event).await?;
        }
        Ok(())
    }
}

fn text_of(event: &Event) -> Result<&str, Error> {
    event
        .text("text")
        .ok_or_else(|| Error::bad_input(format!("`{}` has no `text`", event.kind)))
}

fn transcript_start(language: Option<&str>) -> Event {
    Event::new("transcript-start", with_language(json!({}), language))
}

fn with_language(mut data: Value, language: Option<&str>) -> Value {
    if let Some(language) = language {
        data["language"] = language.into();
    }
    data
}

/// Names and terms of a `transcribe` event as one line that shows the recogniser how they are
/// spelled; names come first, and those that are too many are left out.
fn hint(event: &Event) -> Option<String> {
    let list = |fields: &Map<String, Value>, name: &str| -> Vec<String> {
        let items = fields.get(name).and_then(Value::as_array);
        let texts = items.into_iter().flatten().filter_map(Value::as_str);
        texts.map(|text| text.trim().to_owned()).collect()
    };
    let mut line = String::new();
    let mut items = list(&event.data, "transcript_names");
    items.extend(list(&event.data, "transcript_terms"));
    for item in items.iter().filter(|item| !item.is_empty()) {
        if line.chars().count() + item.chars().count() > MAX_HINT {
            break;
        }
        if !line.is_empty() {
            line.push_str(", ");
        }
        line.push_str(item);
    }
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn names_come_before_terms_and_not_all_of_too_many() {
        let event = Event::new(
            "transcribe",
            json!({"transcript_terms": ["lux"], "transcript_names": [" Küche ", "", 3, "Bad"]}),
        );
        assert_eq!(hint(&event).as_deref(), Some("Küche, Bad, lux"));
        let many = json!({"transcript_names": vec!["Wohnzimmer"; 500]});
        let line = hint(&Event::new("transcribe", many)).unwrap();
        assert!(
            (500..=MAX_HINT + 100).contains(&line.len()),
            "{}",
            line.len()
        );
        assert_eq!(hint(&Event::new("transcribe", json!({}))), None);
    }
}
