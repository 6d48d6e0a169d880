//! Networks of formula weights: every published number of stems, both kinds of package, and what
//! must not depend on how sound comes in.

use std::path::Path;

use audiocpp::{
    audio::Audio,
    engine::{
        CancelToken, ErrorClass, Event, Family, LoadOptions, Model, OptionValue, Options,
        RunContext, SeparateRequest, Separation, Session, Task,
    },
};
use audiocpp_spleeter::{Spleeter, size::FILTERS};
use audiocpp_testing::{expected::relative_error, formula};
use safetensors::{Dtype, serialize_to_file, tensor::TensorView};

/// Names and shapes of one network's tensors.
fn layout() -> Vec<(String, Vec<usize>)> {
    let mut tensors = Vec::new();
    let norm = |name: String, channels: usize, tensors: &mut Vec<(String, Vec<usize>)>| {
        for part in ["weight", "bias", "running_mean", "running_var"] {
            tensors.push((format!("{name}.{part}"), vec![channels]));
        }
    };
    for (i, &out) in FILTERS.iter().enumerate() {
        let inputs = if i == 0 { 2 } else { FILTERS[i - 1] };
        tensors.push((
            format!("down{}_conv.1.weight", i + 1),
            vec![out, inputs, 5, 5],
        ));
        tensors.push((format!("down{}_conv.1.bias", i + 1), vec![out]));
        norm(format!("down{}_act.0", i + 1), out, &mut tensors);
    }
    for i in 0..6 {
        let inputs = FILTERS[5 - i] * if i == 0 { 1 } else { 2 };
        let out = if i == 5 { 1 } else { FILTERS[4 - i] };
        tensors.push((format!("up{}.0.weight", i + 1), vec![inputs, out, 5, 5]));
        tensors.push((format!("up{}.0.bias", i + 1), vec![out]));
        norm(format!("up{}.3", i + 1), out, &mut tensors);
    }
    tensors.push(("up7.0.weight".into(), vec![2, 1, 4, 4]));
    tensors.push(("up7.0.bias".into(), vec![2]));
    tensors
}

fn write(path: &Path, stems: &[&str], prefixed: bool) {
    let mut tensors = Vec::new();
    for stem in stems {
        for (name, shape) in layout() {
            let values = formula::tensor(&format!("{stem}.{name}"), &shape);
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let name = if prefixed {
                format!("{stem}.{name}")
            } else {
                name
            };
            tensors.push((name, shape, bytes));
        }
    }
    let views = tensors.iter().map(|(name, shape, bytes)| {
        (
            name,
            TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap(),
        )
    });
    serialize_to_file(views, None, path).unwrap();
}

fn load(path: &Path) -> Box<dyn Model> {
    let options = LoadOptions {
        device: "cpu".into(),
        threads: Some(2),
        ..LoadOptions::default()
    };
    assert!(Spleeter.can_load(path));
    Spleeter.load(path, &options, &RunContext::new()).unwrap()
}

fn clip(frames: usize) -> Audio {
    Audio::new(formula::unit("clip", 2 * frames), 44_100, 2).unwrap()
}

fn separate(model: &dyn Model, clip: &Audio, request: &SeparateRequest) -> Separation {
    let session = model.session(Task::Sep, &Options::default()).unwrap();
    let mut session = session.into_separate().unwrap();
    let mut source = clip.clone().into_source();
    session
        .separate(request, &mut source, &RunContext::new())
        .unwrap()
}

#[test]
fn five_stems_by_softmax_add_up_to_the_mix_below_their_limit() {
    let folder = tempfile::tempdir().unwrap();
    let stems = ["vocals", "piano", "drums", "bass", "other"];
    write(&folder.path().join("model.safetensors"), &stems, true);
    let model = load(folder.path());
    let clip = clip(9000);
    let mut request = SeparateRequest::default();
    request
        .options
        .set("mask_extension", OptionValue::Text("average".into()));
    let found = separate(&*model, &clip, &request);
    let names: Vec<&str> = found.stems.iter().map(|stem| stem.name.as_str()).collect();
    assert_eq!(names, stems);
    // Masks and their averages sum to one, so the stems sum to the mix.
    assert!(
        found.remainder_db.unwrap() < -100.0,
        "{:?}",
        found.remainder_db
    );
    // Without the extension white noise loses the half of its power above 11 kHz.
    let found = separate(&*model, &clip, &SeparateRequest::default());
    let left = found.remainder_db.unwrap();
    assert!((left + 3.01).abs() < 0.3, "{left}");
    request.options.set("bins", OptionValue::Int(1000));
    let session = model.session(Task::Sep, &Options::default()).unwrap();
    let mut session = session.into_separate().unwrap();
    let error = session.separate(&request, &mut clip.into_source(), &RunContext::new());
    assert!(error.unwrap_err().message.contains("multiple of 64"));
}

#[test]
fn files_and_prefixes_are_the_same_model_and_one_stem_is_one_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let stems = ["vocals", "drums", "bass", "other"];
    write(&folder.path().join("model.safetensors"), &stems, true);
    let files = tempfile::tempdir().unwrap();
    for stem in stems {
        write(
            &files.path().join(format!("{stem}.safetensors")),
            &[stem],
            false,
        );
    }
    let clip = clip(20_000);
    let whole = separate(&*load(folder.path()), &clip, &SeparateRequest::default());
    let model = load(files.path());
    let found = separate(&*model, &clip, &SeparateRequest::default());
    assert_eq!(found, whole);
    let request = SeparateRequest {
        stems: vec!["bass".into()],
        ..Default::default()
    };
    let one = separate(&*model, &clip, &request);
    assert_eq!(one.stems.len(), 1);
    assert_eq!(one.stems[0], whole.stems[2]);
    assert!(relative_error(&one.stems[0].audio.samples, &clip.samples) > 0.1);
}

#[test]
fn a_run_stops_when_it_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder.path().join("model.safetensors"),
        &["vocals", "accompaniment"],
        true,
    );
    let model = load(folder.path());
    let session = model.session(Task::Sep, &Options::default()).unwrap();
    let Session::Separate(mut session) = session else {
        panic!("a separator");
    };
    let cancel = CancelToken::default();
    let token = cancel.clone();
    let sink = move |event: Event| {
        if matches!(event, Event::Progress { .. }) {
            token.cancel();
        }
    };
    let context = RunContext::with_sink(cancel, std::sync::Arc::new(sink));
    let mut source = clip(1_000_000).into_source();
    let error = session.separate(&SeparateRequest::default(), &mut source, &context);
    assert_eq!(error.unwrap_err().class, ErrorClass::Cancelled);
}

#[test]
fn damaged_packages_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let open = || {
        let device = audiocpp::graph::Device::cpu(1).unwrap();
        let policy = audiocpp::weights::Policy::Native;
        let found = audiocpp_spleeter::open(folder.path(), &device, policy);
        found.err().expect("an error").to_string()
    };
    assert!(!Spleeter.can_load(folder.path()));
    assert!(open().contains("no checkpoint for each stem"));
    write(&path, &["vocals", "bass"], true);
    assert!(open().contains("U-Nets for"));
    std::fs::write(&path, "short").unwrap();
    assert!(!open().is_empty());
    std::fs::remove_file(&path).unwrap();
    for stem in ["vocals", "accompaniment"] {
        std::fs::write(folder.path().join(format!("{stem}.ckpt")), b"PK\x03\x04").unwrap();
    }
    assert!(Spleeter.can_load(folder.path()));
    assert!(open().contains("vocals.ckpt"));
}
