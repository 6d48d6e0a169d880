use audiocpp::{
    audio::Audio,
    engine::{Event, Speech, SpeechPart, Stem, SynthesizeRequest},
};
use proptest::prelude::*;

use super::*;
use crate::{
    job::{Job, Outcome},
    worker::message::{Answer, Order},
};

fn audio(samples: Vec<f32>, channels: u16) -> Audio {
    Audio::new(samples, 24_000, channels).unwrap()
}

fn bytes_of<M: Message>(message: M) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes, message).unwrap();
    bytes
}

fn stems(list: &[&[f32]]) -> Answer {
    let stems = list.iter().enumerate().map(|(i, samples)| Stem {
        name: format!("stem {i}"),
        audio: audio(samples.to_vec(), 1),
    });
    Answer::Event(Event::Stems {
        stems: stems.collect(),
    })
}

fn event(answer: Option<Answer>) -> Event {
    match answer {
        Some(Answer::Event(event)) => event,
        other => panic!("{other:?} is no event"),
    }
}

#[test]
fn sound_travels_as_samples_and_arrives_where_it_belongs() {
    let odd = f32::from_bits(0x7fc0_1234);
    let mut bytes = bytes_of(stems(&[&[0.25, -1.0], &[], &[odd, f32::INFINITY, 1e-40]]));
    let head = bytes_of(stems(&[&[], &[], &[]])).len();
    // Twenty bytes of samples and the list of their lengths; no text made of samples.
    assert!(bytes.len() < head + 5 * 4 + 30, "{} {head}", bytes.len());
    let speech = Speech {
        audio: audio(vec![0.5; 6], 2),
        duration: 3.0,
        segments: Vec::new(),
        warnings: Vec::new(),
    };
    bytes.extend(bytes_of(Answer::Done {
        id: 9,
        outcome: Box::new(Outcome::Speech(speech.clone())),
        memory: 7,
    }));
    let mut incoming = Incoming::new(bytes.as_slice());
    let Event::Stems { stems: found } = event(incoming.receive().unwrap()) else {
        panic!("stems were sent");
    };
    assert_eq!(found[0].audio.samples, [0.25, -1.0]);
    assert!(found[1].audio.samples.is_empty());
    let bits: Vec<u32> = found[2].audio.samples.iter().map(|s| s.to_bits()).collect();
    assert_eq!(bits, [0x7fc0_1234, 0x7f80_0000, 1e-40f32.to_bits()]);
    let Some(Answer::Done { id: 9, outcome, .. }) = incoming.receive().unwrap() else {
        panic!("a result was sent");
    };
    let Outcome::Speech(found) = *outcome else {
        panic!("speech was sent");
    };
    assert_eq!(found, speech);
    assert!(incoming.receive::<Answer>().unwrap().is_none());
}

#[test]
fn a_reference_recording_goes_along_with_its_request() {
    let request = SynthesizeRequest {
        text: "hello".into(),
        references: vec![audio(vec![0.5, 0.25], 1), audio(vec![1.0], 1)],
        ..SynthesizeRequest::default()
    };
    let job = Box::new(Job::Synthesize { request });
    let bytes = bytes_of(Order::Run {
        id: 1,
        job,
        voice: None,
    });
    let Some(Order::Run { job, .. }) = Incoming::new(bytes.as_slice()).receive().unwrap() else {
        panic!("a job was sent");
    };
    let Job::Synthesize { request } = *job else {
        panic!("a text was sent");
    };
    assert_eq!(request.references[0].samples, [0.5, 0.25]);
    assert_eq!(request.references[1].samples, [1.0]);
}

#[test]
fn what_is_no_frame_is_refused_before_room_is_made_for_it() {
    let refuse = |bytes: &[u8]| Incoming::new(bytes).receive::<Answer>().unwrap_err();
    let printed = refuse(b"ggml_cuda_init: found 1 CUDA devices");
    assert!(matches!(printed, FrameError::NoFrame(_)), "{printed}");
    let announce = |head: u32, sound: u32| {
        let mut bytes = MARK.to_vec();
        bytes.extend(head.to_le_bytes());
        bytes.extend(sound.to_le_bytes());
        bytes
    };
    for (head, sound) in [(u32::MAX, 0), (0, u32::MAX), ((MAX_HEAD + 1) as u32, 0)] {
        let error = refuse(&announce(head, sound));
        assert!(matches!(error, FrameError::TooLong { .. }), "{error}");
    }
    // A frame of the longest kind that never comes holds no more than what came.
    let mut frames = Frames::default();
    let mut bytes = BytesMut::from(announce(MAX_HEAD as u32, MAX_SOUND as u32).as_slice());
    bytes.extend_from_slice(&[0; 100]);
    assert_eq!(frames.decode(&mut bytes).unwrap(), None);
    assert!(bytes.capacity() < 10_000, "{}", bytes.capacity());
    let cut = refuse(&announce(10, 0));
    assert!(matches!(cut, FrameError::Io(_)), "{cut}");
}

#[test]
fn sound_that_does_not_fit_its_head_is_refused() {
    let frame = |head: &str, sound: usize| Frame {
        head: head.as_bytes().into(),
        sound: vec![0; sound].as_slice().into(),
    };
    let part = serde_json::to_string(&Event::Speech(SpeechPart {
        audio: audio(Vec::new(), 1),
        segment: Default::default(),
    }))
    .unwrap();
    let head = |sounds: &str| format!(r#"{{"sounds":{sounds},"message":{{"event":{part}}}}}"#);
    assert!(frame(&head("[2]"), 8).open::<Answer>().is_ok());
    for (sounds, bytes) in [
        ("[2]", 4),
        ("[2]", 9),
        ("[1,1]", 8),
        ("[]", 4),
        ("[4611686018427387905]", 4),
        ("[18446744073709551615,2]", 4),
    ] {
        let error = frame(&head(sounds), bytes).open::<Answer>().unwrap_err();
        assert!(
            matches!(error, FrameError::Sound { .. }),
            "{sounds}: {error}"
        );
    }
    let unknown = frame(r#"{"message":"beat","more":1}"#, 0).open::<Answer>();
    assert!(matches!(unknown, Err(FrameError::Head(_))), "{unknown:?}");
}

proptest! {
    #[test]
    fn frames_arrive_whole_however_the_stream_is_cut(
        sounds in prop::collection::vec(prop::collection::vec(-1.0f32..1.0, 0..50), 0..4),
        cut in 1usize..40,
    ) {
        let slices: Vec<&[f32]> = sounds.iter().map(Vec::as_slice).collect();
        let bytes = [bytes_of(stems(&slices)), bytes_of(Answer::Beat)].concat();
        let mut frames = Frames::default();
        let (mut pool, mut found) = (BytesMut::new(), Vec::new());
        for piece in bytes.chunks(cut) {
            pool.extend_from_slice(piece);
            while let Some(frame) = frames.decode(&mut pool).unwrap() {
                found.push(frame.open::<Answer>().unwrap());
            }
        }
        prop_assert_eq!(found.len(), 2);
        let Event::Stems { stems } = event(Some(found.remove(0))) else { panic!("stems were sent") };
        let arrived: Vec<Vec<f32>> = stems.into_iter().map(|stem| stem.audio.samples).collect();
        prop_assert_eq!(arrived, sounds);
    }

    #[test]
    fn damaged_frames_never_panic_and_never_grow(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        whole in any::<bool>(),
    ) {
        if whole {
            bytes = bytes_of(stems(&[&[0.5; 9], &[0.25; 3]]));
        }
        for (at, byte) in damage {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        let mut incoming = Incoming::new(bytes.as_slice());
        while let Ok(Some(answer)) = incoming.receive::<Answer>() {
            drop(answer);
        }
        prop_assert!(incoming.bytes.capacity() <= 2 * (bytes.len() + BLOCK));
        let mut incoming = Incoming::new(bytes.as_slice());
        while let Ok(Some(order)) = incoming.receive::<Order>() {
            drop(order);
        }
    }
}
