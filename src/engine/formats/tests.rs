use super::cues::milliseconds;
use super::*;
use crate::engine::{Segment, Word};
use proptest::prelude::*;
use serde_json::Value;

/// A segment whose words are the blank-led parts of `text`, 0.4 s each from `start`.
fn segment(id: u32, start: f64, text: &str) -> Segment {
    let words: Vec<Word> = text
        .split_inclusive(' ')
        .enumerate()
        .map(|(i, word)| Word {
            word: format!(" {}", word.trim_end()),
            start: start + 0.4 * i as f64,
            end: start + 0.4 * (i + 1) as f64,
            probability: 0.9,
        })
        .collect();
    Segment {
        id,
        seek: 100,
        start,
        end: start + 0.4 * words.len() as f64,
        text: format!(" {text}"),
        speaker: None,
        tokens: vec![50364, 11, 50400],
        temperature: 0.2,
        avg_logprob: -0.25,
        compression_ratio: 1.5,
        no_speech_prob: 0.01,
        words,
    }
}

fn transcript(texts: &[&str]) -> Transcript {
    let segments: Vec<Segment> = texts
        .iter()
        .enumerate()
        .map(|(i, text)| segment(i as u32, 5.0 * i as f64, text))
        .collect();
    Transcript {
        text: texts.join(" "),
        language: Some("lv".into()),
        duration: 20.0,
        segments,
        warnings: Vec::new(),
    }
}

fn render(format: TranscriptFormat, transcript: &Transcript, options: &FormatOptions) -> String {
    format.render(transcript, options)
}

/// Reads SRT strictly: number, times, one or more lines, an empty line.
fn read_srt(text: &str) -> Vec<Cue> {
    let blocks = text.split_terminator("\n\n").enumerate();
    blocks
        .map(|(i, block)| {
            let (number, rest) = block.split_once('\n').expect("number");
            assert_eq!(number.parse(), Ok(i + 1));
            read_cue(rest, ',')
        })
        .collect()
}

/// Reads WebVTT strictly, and its three escapes.
fn read_vtt(text: &str) -> Vec<Cue> {
    let blocks = text.strip_prefix("WEBVTT\n\n").expect("head");
    let plain = |line: &String| {
        assert!(!line.contains(['<', '>']));
        line.replace("&gt;", ">")
            .replace("&lt;", "<")
            .replace("&amp;", "&")
    };
    blocks
        .split_terminator("\n\n")
        .map(|block| {
            let cue = read_cue(block, '.');
            let lines = cue.lines.iter().map(plain).collect();
            Cue { lines, ..cue }
        })
        .collect()
}

fn read_cue(block: &str, mark: char) -> Cue {
    let (times, text) = block.split_once('\n').expect("times");
    let (start, end) = times.split_once(" --> ").expect("arrow");
    let read = |time: &str| {
        let (clock, ms) = time.split_once(mark).expect("milliseconds");
        assert_eq!((clock.len() >= 8, ms.len()), (true, 3), "{time}");
        let seconds = clock
            .split(':')
            .map(|part| part.parse::<u64>().expect("a number"));
        seconds.fold(0, |sum, part| 60 * sum + part) * 1000 + ms.parse::<u64>().expect("ms")
    };
    Cue {
        start: read(start),
        end: read(end),
        lines: text.lines().map(str::to_owned).collect(),
    }
}

fn cue(start: u64, end: u64, lines: &[&str]) -> Cue {
    Cue {
        start,
        end,
        lines: lines.iter().map(|line| line.to_string()).collect(),
    }
}

#[test]
fn a_segment_is_a_subtitle() {
    let transcript = transcript(&["Labdien, šī ir valoda.", "日本語 🎵"]);
    let srt = render(
        TranscriptFormat::Srt,
        &transcript,
        &FormatOptions::default(),
    );
    assert_eq!(
        srt,
        "1\n00:00:00,000 --> 00:00:01,600\nLabdien, šī ir valoda.\n\n\
         2\n00:00:05,000 --> 00:00:05,800\n日本語 🎵\n\n"
    );
    let vtt = render(
        TranscriptFormat::Vtt,
        &transcript,
        &FormatOptions::default(),
    );
    assert!(vtt.starts_with("WEBVTT\n\n00:00:00.000 --> 00:00:01.600\nLabdien"));
    let tsv = render(
        TranscriptFormat::Tsv,
        &transcript,
        &FormatOptions::default(),
    );
    assert_eq!(
        tsv,
        "start\tend\ttext\n0\t1600\tLabdien, šī ir valoda.\n5000\t5800\t日本語 🎵\n"
    );
    let text = render(
        TranscriptFormat::Text,
        &transcript,
        &FormatOptions::default(),
    );
    assert_eq!(text, "Labdien, šī ir valoda. 日本語 🎵\n");
}

#[test]
fn lines_and_subtitles_are_limited() {
    let transcript = transcript(&["one two three four five six"]);
    let options = FormatOptions {
        max_line_width: Some(9),
        ..FormatOptions::default()
    };
    assert_eq!(
        cues(&transcript, &options),
        [cue(0, 2400, &["one two", "three", "four five", "six"])]
    );
    let options = FormatOptions {
        max_line_count: Some(2),
        ..options
    };
    assert_eq!(
        cues(&transcript, &options),
        [
            cue(0, 1200, &["one two", "three"]),
            cue(1200, 2400, &["four five", "six"])
        ]
    );
    let options = FormatOptions {
        max_words_per_line: Some(4),
        ..FormatOptions::default()
    };
    assert_eq!(
        cues(&transcript, &options),
        [
            cue(0, 1600, &["one two three four"]),
            cue(1600, 2400, &["five six"])
        ]
    );
}

#[test]
fn without_words_the_text_is_shared_out() {
    let mut transcript = transcript(&["aaaa bbbb cccc"]);
    transcript.segments[0].words.clear();
    transcript.segments[0].end = 3.0;
    let options = FormatOptions {
        max_line_width: Some(5),
        max_line_count: Some(1),
        ..FormatOptions::default()
    };
    // 15 graphemes with the leading blank in 3 s: 0.2 s each.
    assert_eq!(
        cues(&transcript, &options),
        [
            cue(0, 1000, &["aaaa"]),
            cue(1000, 2000, &["bbbb"]),
            cue(2000, 3000, &["cccc"])
        ]
    );
}

#[test]
fn bad_times_and_texts_are_mended() {
    let mut transcript = transcript(&["a --> <b> & c", "\n \n", "d"]);
    transcript.segments[0].words.clear();
    transcript.segments[0].start = -112.3;
    transcript.segments[0].end = f64::NAN;
    transcript.segments[0].text = " a\n\n--> <b> & c".into();
    transcript.segments[1].words.clear();
    transcript.segments[2].words[0].end = 99.0;
    for format in [TranscriptFormat::Srt, TranscriptFormat::Vtt] {
        let text = render(format, &transcript, &FormatOptions::default());
        let cues = match format {
            TranscriptFormat::Srt => read_srt(&text),
            _ => read_vtt(&text),
        };
        assert_eq!(cues.len(), 2, "{text}");
        assert_eq!((cues[0].start, cues[1].end), (0, 20_000));
        assert!(cues[0].lines[0].ends_with("> <b> & c"), "{text}");
    }
}

#[test]
fn verbose_json_has_the_fields_of_openai() {
    let transcript = transcript(&["Labdien, šī", "日本語 👩‍👩‍👧‍👦 \"q\" \\"]);
    let options = FormatOptions {
        words: true,
        ..FormatOptions::default()
    };
    let json = render(TranscriptFormat::VerboseJson, &transcript, &options);
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["task"], "transcribe");
    assert_eq!(value["language"], "latvian");
    assert_eq!(value["duration"], 20.0);
    assert_eq!(value["text"], transcript.text);
    let fields: Vec<&String> = value["segments"][0].as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        [
            "id",
            "seek",
            "start",
            "end",
            "text",
            "tokens",
            "temperature",
            "avg_logprob",
            "compression_ratio",
            "no_speech_prob"
        ]
    );
    assert!(
        json.contains("\"temperature\": 0.2,"),
        "written as it was given"
    );
    assert_eq!(value["segments"][1]["text"], transcript.segments[1].text);
    assert_eq!(value["words"][2]["word"], "日本語");
    assert_eq!(value["words"][2]["start"], 5.0);
    assert_eq!(value["usage"]["seconds"], 20.0);
    let options = FormatOptions {
        translated: true,
        no_segments: true,
        ..FormatOptions::default()
    };
    let json = render(TranscriptFormat::VerboseJson, &transcript, &options);
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&value["task"], &value["language"]),
        (&"translate".into(), &"english".into())
    );
    assert!(value.get("words").is_none() && value.get("segments").is_none());
}

#[test]
fn json_holds_no_null_for_a_number() {
    let mut transcript = transcript(&["a"]);
    transcript.segments[0].avg_logprob = f32::NEG_INFINITY;
    transcript.duration = f64::NAN;
    let json = render(
        TranscriptFormat::VerboseJson,
        &transcript,
        &FormatOptions::default(),
    );
    assert!(!json.contains("null"), "{json}");
    let plain = render(
        TranscriptFormat::Json,
        &transcript,
        &FormatOptions::default(),
    );
    let value: Value = serde_json::from_str(&plain).unwrap();
    assert_eq!(value["text"], "a");
    assert_eq!(value["usage"]["type"], "duration");
}

#[test]
fn names_and_types() {
    for format in TranscriptFormat::ALL {
        assert_eq!(format.name().parse(), Ok(format));
    }
    let error = "sub".parse::<TranscriptFormat>().unwrap_err();
    assert!(
        error.contains("`sub`") && error.contains("verbose_json"),
        "{error}"
    );
    assert!(
        TranscriptFormat::Srt
            .content_type()
            .starts_with("text/plain")
    );
    assert_eq!(TranscriptFormat::VerboseJson.extension(), "json");
    assert_eq!(clock(3_723_004, '.'), "01:02:03.004");
    assert_eq!(clock(360_000_000, ','), "100:00:00,000");
    assert_eq!(milliseconds(1.0005), 1001);
}

proptest! {
    #[test]
    fn subtitles_read_back_in_order(
        texts in prop::collection::vec("[a-d šģ日本語🎵 .\n<&>-]{0,40}", 0..5),
        times in prop::collection::vec(
            (prop_oneof![9 => -5.0f64..60.0, 1 => Just(f64::NAN)], -2.0f64..9.0), 60),
        with_words: bool,
        (width, count, words) in (
            prop::option::of(1usize..20), prop::option::of(0usize..4),
            prop::option::of(0usize..5)),
        duration in 0.0f64..60.0,
    ) {
        let mut times = times.into_iter().cycle();
        let mut transcript = transcript(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        transcript.duration = duration;
        for segment in &mut transcript.segments {
            let mut next = || times.next().map(|(start, length)| (start, start + length));
            (segment.start, segment.end) = next().unwrap_or_default();
            for word in &mut segment.words {
                (word.start, word.end) = next().unwrap_or_default();
            }
            if !with_words {
                segment.words.clear();
            }
        }
        let options = FormatOptions {
            max_line_width: width,
            max_line_count: count,
            max_words_per_line: words,
            ..FormatOptions::default()
        };
        let wanted = cues(&transcript, &options);
        let vtt = read_vtt(&render(TranscriptFormat::Vtt, &transcript, &options));
        prop_assert_eq!(&vtt, &wanted);
        let srt = read_srt(&render(TranscriptFormat::Srt, &transcript, &options));
        prop_assert_eq!(srt.len(), wanted.len());
        let limit = match milliseconds(duration) { 0 => u64::MAX, ms => ms };
        let mut floor = 0;
        for cue in &srt {
            prop_assert!(floor <= cue.start && cue.start <= cue.end && cue.end <= limit);
            floor = cue.start;
            prop_assert!(count.is_none_or(|count| cue.lines.len() <= count.max(1)));
        }
        // Nothing but blanks is lost, and no word is cut.
        let shown: Vec<&str> = wanted
            .iter()
            .flat_map(|cue| &cue.lines)
            .flat_map(|line| line.split_whitespace())
            .collect();
        let said: Vec<&str> = texts.iter().flat_map(|text| text.split_whitespace()).collect();
        prop_assert_eq!(shown.concat(), said.concat());
    }
}
