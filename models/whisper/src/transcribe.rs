//! Long audio, window by window: what was heard decides where the next window starts.

use audiocpp::{
    audio::{AudioSource, LogMel, MonoAt, mono_at},
    engine::{
        Error, Event, Result, RunContext, Segment, TranscribeRequest, Transcript, Unit, Word,
    },
    sampling::TorchRandom,
};

use crate::{
    alignment::Attention,
    gates::{Attempt, Gates, average_logprob, compression_ratio, temperatures},
    languages::language_code,
    level::is_silent,
    loop_guard::find_loop,
    machine::{FIRST_ROW, Lane, Machine},
    rules::Rules,
    search::{Found, Strategy, Task as SearchTask, search},
    segments::{Cut, cut, cut_broken},
    tokenizer::{Task, WhisperTokenizer},
    words::{self, Alignment},
};

/// Whisper's sampling rate.
pub const RATE: u32 = 16_000;
/// Samples of an encoder frame: 20 ms.
const FRAME: usize = 320;
/// Shorter audio holds no word: 0.4 s.
const MIN_SAMPLES: usize = 6_400;
/// Silence behind short audio that is encoded frame by frame: 0.32 s at least.
const MARGIN_FRAMES: usize = 16;
/// Encoder lengths are multiples of this, so that few graphs serve all clips.
const FRAME_STEP: usize = 32;
/// Above this temperature the text is too uncertain to be context for the next window.
const MAX_CONTEXT_TEMPERATURE: f32 = 0.5;

/// What a request asks for, with the defaults filled in.
pub struct Settings {
    pub language: Option<String>,
    pub task: Task,
    pub prompt: Vec<u32>,
    pub words: bool,
    pub timestamps: bool,
    pub condition: bool,
    pub full_window: bool,
    pub temperatures: Vec<f32>,
    pub beams: usize,
    pub best_of: usize,
    pub seed: u64,
    pub gates: Gates,
}

impl Settings {
    /// Reads a request.
    pub fn new(request: &TranscribeRequest, tokenizer: &WhisperTokenizer) -> Result<Settings> {
        let o = &request.options;
        let language = match request.language.as_deref() {
            Some("auto") | None => None,
            Some(name) => Some(language_code(name).map_err(bad_input)?.to_owned()),
        };
        let gate = |name: &str, default: f32| Some(o.float(name).map_or(default, |v| v as f32));
        let first = request.temperature.unwrap_or(0.0);
        if !(0.0..=1.0).contains(&first) {
            return Err(Error::bad_input(format!(
                "temperature {first}: expected 0 to 1"
            )));
        }
        Ok(Settings {
            language,
            task: if request.translate {
                Task::Translate
            } else {
                Task::Transcribe
            },
            prompt: tokenizer
                .encode_prompt(request.prompt.as_deref().unwrap_or_default())
                .map_err(bad_input)?,
            words: request.words,
            timestamps: o.bool("timestamps").unwrap_or(true),
            condition: o.bool("condition_on_previous_text").unwrap_or(true),
            full_window: o.bool("full_window").unwrap_or(false),
            temperatures: match o.bool("temperature_fallback").unwrap_or(true) {
                true => temperatures(first, 0.2),
                false => vec![first],
            },
            beams: request.beam_size.unwrap_or(1).clamp(1, 16),
            best_of: o.int("best_of").unwrap_or(5).clamp(1, 16) as usize,
            seed: request.seed.unwrap_or(0),
            gates: Gates {
                compression_ratio: gate("compression_ratio_threshold", 2.4),
                logprob: gate("logprob_threshold", -1.0),
                no_speech: gate("no_speech_threshold", 0.6),
            },
        })
    }
}

fn bad_input(error: impl std::fmt::Display) -> Error {
    Error::bad_input(error.to_string())
}

/// One run over one input.
pub struct Run<'a> {
    pub machine: &'a mut Machine,
    pub tokenizer: &'a WhisperTokenizer,
    pub mel: &'a LogMel,
    pub settings: Settings,
    pub context: &'a RunContext,
}

/// The audio that is in memory: from `start` (in samples) to the end of the current window.
struct Ahead<'s> {
    source: MonoAt<&'s mut dyn AudioSource>,
    samples: Vec<f32>,
    start: usize,
    ended: bool,
}

/// What the windows so far have left behind.
struct Progress {
    segments: Vec<Segment>,
    /// Text tokens of earlier windows, the prompt first.
    history: Vec<u32>,
    /// Where in the history the context begins.
    context_from: usize,
    language: Option<String>,
    last_speech: f64,
    rules: Rules,
    random: TorchRandom,
}

/// A decoded window.
struct Decoded {
    found: Found,
    attempt: Attempt,
    looped: bool,
}

impl Run<'_> {
    /// Reads `audio` to its end.
    pub fn transcribe(mut self, audio: &mut dyn AudioSource) -> Result<Transcript> {
        let total = audio.duration_hint();
        let mut ahead = Ahead {
            source: mono_at(audio, RATE).map_err(bad_input)?,
            samples: Vec::new(),
            start: 0,
            ended: false,
        };
        let mut progress = Progress {
            segments: Vec::new(),
            history: self.settings.prompt.clone(),
            context_from: 0,
            language: self.settings.language.clone(),
            last_speech: 0.0,
            rules: Rules::new(self.tokenizer, self.settings.timestamps).map_err(bad_input)?,
            random: TorchRandom::new(self.settings.seed),
        };
        if !self.tokenizer.is_multilingual() {
            progress.language.get_or_insert_with(|| "en".into());
        }
        let window = self.machine.net().config.audio_ctx * FRAME;
        loop {
            self.context.check()?;
            self.context.timed("read", || ahead.fill(window))?;
            let done = ahead.start as f64 / f64::from(RATE);
            self.context
                .progress("transcribe", done, total, Unit::Seconds);
            if ahead.samples.len() < MIN_SAMPLES {
                break;
            }
            let advance = if is_silent(&ahead.samples, RATE) {
                ahead.samples.len()
            } else {
                self.window(&ahead, &mut progress)?
            };
            ahead.advance(advance);
        }
        let duration = (ahead.start + ahead.samples.len()) as f64 / f64::from(RATE);
        self.context
            .progress("transcribe", duration, Some(duration), Unit::Seconds);
        let text: String = progress.segments.iter().map(|s| s.text.as_str()).collect();
        Ok(Transcript {
            text: text.trim().to_owned(),
            language: progress.language,
            duration,
            segments: progress.segments,
            warnings: ahead.source.warnings(),
        })
    }

    /// Transcribes the samples ahead (one window at most); returns how many of them are done.
    fn window(&mut self, ahead: &Ahead, progress: &mut Progress) -> Result<usize> {
        let content = ahead.samples.len().div_ceil(FRAME);
        let full = self.machine.net().config.audio_ctx;
        let dense = (content + MARGIN_FRAMES)
            .next_multiple_of(FRAME_STEP)
            .min(full);
        let dense = if self.settings.full_window {
            full
        } else {
            dense
        };
        self.encode(&ahead.samples, dense)?;
        if progress.language.is_none() {
            progress.language = Some(self.detect_language()?);
        }
        let language = progress.language.clone().unwrap_or_else(|| "en".into());
        let mut decoded = self.decode(&language, content, dense < full, progress)?;
        if decoded.is_none() && dense < full {
            // Rare: the shortened window confused the decoder; pay for the whole one.
            self.encode(&ahead.samples, full)?;
            decoded = self.decode(&language, content, false, progress)?;
        }
        let Some(decoded) = decoded else {
            return Ok(ahead.samples.len());
        };
        if self.settings.gates.is_silence(&decoded.attempt) {
            return Ok(ahead.samples.len());
        }
        self.accept(ahead, progress, &language, decoded)
    }

    fn encode(&mut self, samples: &[f32], dense: usize) -> Result<()> {
        let frames = self.machine.layout(dense);
        let mel = || self.mel.window(samples, frames.mels());
        let mel = self.context.timed("features", mel).map_err(bad_input)?;
        let encode = || self.machine.encode(&mel, &frames);
        self.context.timed("encode", encode)?;
        Ok(())
    }

    fn detect_language(&mut self) -> Result<String> {
        let special = self.tokenizer.special();
        let lane = Lane {
            token: special.sot,
            position: 0,
            row: FIRST_ROW,
            past: &[],
        };
        let score = || self.machine.score(&[lane], &[0]);
        let scores = self.context.timed("language", score)?;
        let best = special
            .languages()
            .max_by(|&a, &b| scores[a as usize].total_cmp(&scores[b as usize]));
        let code = best.and_then(|token| self.tokenizer.language_of(token));
        Ok(code.unwrap_or("en").to_owned())
    }

    /// Decodes the encoded window at rising temperatures until the gates let a text pass. With
    /// `strict`, a failure of the first temperature gives `None` instead.
    fn decode(
        &mut self,
        language: &str,
        content: usize,
        strict: bool,
        progress: &mut Progress,
    ) -> Result<Option<Decoded>> {
        let start = self
            .tokenizer
            .sot_sequence(language, self.settings.task, self.settings.timestamps)
            .map_err(bad_input)?;
        let text_ctx = self.machine.net().config.text_ctx;
        let mut prompt = self
            .tokenizer
            .previous_text(&progress.history[progress.context_from..], text_ctx);
        let sot = prompt.len();
        prompt.extend(&start);
        progress.rules.end_at(content as u32);
        let special = *self.tokenizer.special();
        let gates = self.settings.gates;
        let mut failed: Vec<Decoded> = Vec::new();
        for &temperature in &self.settings.temperatures {
            let task = SearchTask {
                prompt: &prompt,
                sot,
                eot: special.eot,
                no_speech: special.no_speech,
                rules: &progress.rules,
                strategy: Strategy {
                    temperature,
                    beams: self.settings.beams,
                    best_of: self.settings.best_of,
                    max_tokens: text_ctx / 2,
                },
            };
            let cancel = &self.context.cancel;
            let stop = || cancel.is_cancelled();
            let decode = || search(self.machine, &task, &mut progress.random, &stop);
            let found = self.context.timed("decode", decode)?;
            let decoded = self.judge(found, temperature);
            let bad = gates.needs_fallback(&decoded.attempt) || !decoded.found.best.ended;
            if !bad {
                return Ok(Some(decoded));
            }
            if strict {
                return Ok(None);
            }
            failed.push(decoded);
        }
        let attempts: Vec<Attempt> = failed.iter().map(|d| d.attempt).collect();
        Ok(gates.best(&attempts).map(|i| failed.swap_remove(i)))
    }

    /// Looks at a decoded text as the gates want it; cuts a loop off.
    fn judge(&self, mut found: Found, temperature: f32) -> Decoded {
        let eot = self.tokenizer.special().eot;
        let best = &mut found.best;
        let avg_logprob = average_logprob(best.sum, best.tokens.len());
        let text = self.tokenizer.decode(&best.tokens);
        let attempt = Attempt {
            temperature,
            compression_ratio: compression_ratio(text.trim()),
            avg_logprob,
            no_speech_prob: found.no_speech,
        };
        let repeated = find_loop(&best.tokens, eot);
        if let Some(repeated) = &repeated {
            best.tokens.drain(repeated.repeats.clone());
            best.logprobs.drain(repeated.repeats.clone());
        }
        Decoded {
            found,
            attempt,
            looped: repeated.is_some(),
        }
    }

    /// Turns a decoded window into segments; returns how many samples are done.
    fn accept(
        &mut self,
        ahead: &Ahead,
        progress: &mut Progress,
        language: &str,
        decoded: Decoded,
    ) -> Result<usize> {
        let special = *self.tokenizer.special();
        let offset = ahead.start as f64 / f64::from(RATE);
        let content = ahead.samples.len() as f64 / f64::from(RATE);
        let best = &decoded.found.best;
        let Cut {
            mut pieces,
            seconds,
        } = if decoded.looped {
            cut_broken(&best.tokens, special.timestamp_begin, content)
        } else {
            cut(&best.tokens, special.timestamp_begin, content)
        };
        pieces.retain(|piece| {
            let text = self.tokenizer.decode(&best.tokens[piece.tokens.clone()]);
            !text.trim().is_empty() && piece.end > piece.start
        });
        let mut segments: Vec<Segment> = pieces
            .iter()
            .enumerate()
            .map(|(i, piece)| Segment {
                id: (progress.segments.len() + i) as u32,
                seek: (offset * 100.0).round() as u64,
                start: offset + piece.start,
                end: offset + piece.end,
                text: self.tokenizer.decode(&best.tokens[piece.tokens.clone()]),
                speaker: None,
                tokens: best.tokens[piece.tokens.clone()].to_vec(),
                temperature: decoded.attempt.temperature,
                avg_logprob: decoded.attempt.avg_logprob,
                compression_ratio: decoded.attempt.compression_ratio,
                no_speech_prob: decoded.attempt.no_speech_prob,
                words: Vec::new(),
            })
            .collect();
        if self.settings.words && !segments.is_empty() {
            let probabilities: Vec<f32> = pieces
                .iter()
                .flat_map(|piece| piece.tokens.clone())
                .filter(|&i| best.tokens[i] < special.eot)
                .map(|i| best.logprobs[i].exp())
                .collect();
            self.time_words(
                &mut segments,
                &probabilities,
                ahead,
                progress.last_speech,
                language,
            )?;
        }
        let limit = offset + content;
        let mut earliest = progress.segments.last().map_or(0.0, |s| s.start);
        for segment in &mut segments {
            segment.end = segment.end.min(limit);
            segment.start = segment.start.clamp(earliest, segment.end.max(earliest));
            segment.end = segment.end.max(segment.start).min(limit.max(segment.start));
            earliest = segment.start;
        }
        let uncertain = decoded.attempt.temperature > MAX_CONTEXT_TEMPERATURE || decoded.looped;
        progress.history.extend(
            segments
                .iter()
                .flat_map(|s| s.tokens.iter().filter(|&&t| t < special.eot)),
        );
        if uncertain || !self.settings.condition {
            progress.context_from = progress.history.len();
        }
        progress.last_speech = segments.last().map_or(progress.last_speech, |s| s.end);
        for segment in segments {
            self.context.send(Event::Segment(segment.clone()));
            progress.segments.push(segment);
        }
        // A window that claims to have heard nothing of itself would be heard again for ever.
        let samples = (seconds * f64::from(RATE)) as usize;
        Ok(if samples < FRAME {
            ahead.samples.len()
        } else {
            samples.min(ahead.samples.len())
        })
    }

    fn time_words(
        &mut self,
        segments: &mut [Segment],
        probabilities: &[f32],
        ahead: &Ahead,
        last_speech: f64,
        language: &str,
    ) -> Result<()> {
        let special = *self.tokenizer.special();
        let start = self
            .tokenizer
            .sot_sequence(language, self.settings.task, false)
            .map_err(bad_input)?;
        let text: Vec<Vec<u32>> = segments
            .iter()
            .map(|s| {
                s.tokens
                    .iter()
                    .copied()
                    .filter(|&t| t < special.eot)
                    .collect()
            })
            .collect();
        let mut tokens = start.clone();
        tokens.extend(text.iter().flatten());
        tokens.push(special.eot);
        let heads = self.machine.net().config.alignment_heads.len();
        let frames = self.machine.frames();
        let attention = || self.machine.attention(&tokens);
        let weights = self.context.timed("align", attention)?;
        let attention = Attention::new(&weights, heads, tokens.len(), frames)
            .map_err(|e| Error::internal(e.to_string()))?;
        let times = attention.token_times(start.len() - 1, ahead.samples.len().div_ceil(FRAME));
        let pieces: Vec<words::Segment> = segments
            .iter()
            .zip(&text)
            .map(|(s, tokens)| words::Segment {
                start: s.start,
                end: s.end,
                tokens,
            })
            .collect();
        let alignment = Alignment {
            times: &times,
            probabilities,
            offset: ahead.start as f64 / f64::from(RATE),
            duration: (ahead.start + ahead.samples.len()) as f64 / f64::from(RATE),
            last_speech,
        };
        let timed = words::time_words(self.tokenizer, language, &pieces, &alignment);
        for (segment, timed) in segments.iter_mut().zip(timed) {
            segment.start = timed.start;
            segment.end = timed.end;
            segment.words = timed
                .words
                .into_iter()
                .map(|w| Word {
                    word: w.text,
                    start: w.start,
                    end: w.end,
                    probability: w.probability,
                })
                .collect();
        }
        Ok(())
    }
}

impl Ahead<'_> {
    /// Reads until there are `wanted` samples or the source ends.
    fn fill(&mut self, wanted: usize) -> Result<()> {
        while !self.ended && self.samples.len() < wanted {
            let missing = wanted - self.samples.len();
            let read = self
                .source
                .read(&mut self.samples, missing)
                .map_err(bad_input)?;
            self.ended = read == 0;
        }
        Ok(())
    }

    fn advance(&mut self, samples: usize) {
        self.samples.drain(..samples);
        self.start += samples;
    }
}
