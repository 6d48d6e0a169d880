//! Small networks of formula weights beside the original code, stage by stage: every tensor of
//! `tests/data/miocodec/expected.safetensors`, on the CPU with and without code of ours, and on a
//! stand-in for a GPU.

mod common;

use std::{cell::RefCell, collections::BTreeSet};

use audiocpp::{
    audio::SincResampler,
    backend::Choices,
    engine::{LoadOptions, RunContext},
    graph::Device,
    nn::Fsq,
    weights::Policy,
};
use audiocpp_miocodec::{activation, machine::Machine};
use audiocpp_testing::expected::{Expected, max_difference};

use common::{Package, data};

/// How far a stage may be off: values reach 7, and the reference moves by 1.3e-4 itself.
const FEATURES: f32 = 2e-4;
const WAVES: f32 = 5e-4;

/// The expected values, and which of them were met.
struct Check {
    expected: Expected,
    seen: RefCell<BTreeSet<String>>,
    device: String,
}

impl Check {
    fn new(device: &str) -> Check {
        Check {
            expected: Expected::read(data("expected.safetensors")),
            seen: RefCell::default(),
            device: device.to_owned(),
        }
    }

    /// Values of a tensor; `[1, channel, time]` and `[channel, time]` of some as `[time, channel]`.
    fn wanted(&self, key: &str, turned: bool) -> Vec<f32> {
        self.seen.borrow_mut().insert(key.to_owned());
        let values = self.expected.f32(key);
        if !turned {
            return values;
        }
        let shape = self.expected.shape(key);
        let [channels, time] = shape[shape.len() - 2..] else {
            panic!("{shape:?}")
        };
        let place = |i: usize| values[i % channels * time + i / channels];
        (0..channels * time).map(place).collect()
    }

    fn number(&self, key: &str) -> usize {
        self.seen.borrow_mut().insert(key.to_owned());
        self.expected.i64(key)[0] as usize
    }

    fn tokens(&self, key: &str) -> Vec<i32> {
        self.seen.borrow_mut().insert(key.to_owned());
        let tokens = self.expected.i64(key).into_iter();
        tokens.map(|token| token as i32).collect()
    }

    /// `found` may go on where only the beginning was kept.
    fn near(&self, key: &str, found: &[f32], wanted: &[f32], tolerance: f32) {
        let first = key.contains("first") || key.starts_with("voc_01");
        assert!(
            first || found.len() == wanted.len(),
            "{key}: {}",
            found.len()
        );
        let off = max_difference(&found[..wanted.len()], wanted);
        println!("{} {key}: {off:.1e}", self.device);
        assert!(off < tolerance, "{} {key}: {off:.1e}", self.device);
    }

    fn values(&self, key: &str, found: &[f32], tolerance: f32) {
        self.near(key, found, &self.wanted(key, false), tolerance);
    }

    /// Stages of the last run; those whose key or place says so have channels first.
    fn stages(&self, machine: &Machine, stages: &[(&str, &str)]) {
        for (key, name) in stages {
            let turned = key.ends_with("_bct") || key.starts_with("04_") || key.starts_with("voc_");
            let found = machine.stage(name).unwrap();
            self.near(key, &found, &self.wanted(key, turned), FEATURES);
        }
    }

    fn all(&self) {
        let seen = self.seen.borrow();
        let missed: Vec<&str> = self
            .expected
            .names()
            .filter(|name| !seen.contains(*name))
            .collect();
        assert!(missed.is_empty(), "not compared: {missed:?}");
    }
}

fn machine(package: &Package, device: &Device) -> Machine {
    let model = audiocpp_miocodec::open(package.path(), None, device, Policy::Native).unwrap();
    let mut machine = model.machine().unwrap();
    machine.trace();
    machine
}

/// Sound to tokens and global vector, and back; another voice.
fn wave(check: &Check, device: &Device) {
    let mut machine = machine(&Package::wave(), device);
    let samples = check.wanted("01_wave_24k", false);
    assert_eq!(
        machine.padding(samples.len()),
        check.number("02_padding_each_side")
    );
    check.values("03_wave_16k", &machine.heard(&samples), FEATURES);
    let taps = SincResampler::new(24_000, 16_000).unwrap().taps().concat();
    check.values("03b_resampler_kernel", &taps, 1e-6);
    let made = machine.encode(&samples).unwrap();
    check.stages(
        &machine,
        &[
            ("04_ssl_conv0_first_200", "wavlm.conv0"),
            ("04_ssl_conv6", "wavlm.conv6"),
            ("05_ssl_feature_projection", "wavlm.projection"),
            ("06_ssl_pos_conv", "wavlm.positions"),
            ("07_ssl_encoder_in", "wavlm.encoder_in"),
            ("08_ssl_position_bias", "wavlm.bias"),
            ("08b_ssl_layer1_attention_out", "wavlm.layer1_attention"),
            ("09_ssl_layer1_out", "wavlm.layer1"),
            ("09_ssl_layer2_out", "wavlm.layer2"),
            ("09_ssl_layer6_out", "wavlm.layer6"),
            ("09_ssl_layer9_out", "wavlm.layer9"),
            ("10_local_ssl_mean", "local"),
            ("11_local_ssl_normalized", "standardized"),
            ("12_global_ssl_mean", "global"),
            (
                "13_local_encoder_layer0_attention_out",
                "local_encoder.layer0_attention",
            ),
            ("13b_local_encoder_layer0_out", "local_encoder.layer0_out"),
            ("14_local_encoder_out", "encoded"),
            ("15_conv_downsample_out_bct", "downsampled"),
            ("20_global_embed_bct", "global.embed"),
            ("21_global_norm", "global.norm"),
            ("22_global_convnext0_bct", "global.block0"),
            ("23_global_backbone_out", "global.backbone"),
            ("25_global_pool_mean_std", "global.pooled"),
        ],
    );
    check.values(
        "24_global_pool_alpha_bct",
        &machine.stage("global.share").unwrap(),
        FEATURES,
    );
    check.values("16_fsq_latent", &made.latents, FEATURES);
    let fsq = Fsq::new(&[8, 8, 8, 5, 5]).unwrap();
    check.values("17_fsq_bounded", &fsq.bounded(&made.latents), FEATURES);
    assert_eq!(made.tokens, check.tokens("19_content_token_indices"));
    check.values("18_fsq_codes", &fsq.codes(&made.tokens), 1e-6);
    check.values("26_global_embedding", &made.global, FEATURES);
    assert_eq!(machine.voice(&samples).unwrap(), made.global);

    let target = check.number("30b_target_audio_length");
    let frames = target / machine.frame_samples();
    assert_eq!(frames, check.number("30c_stft_length"));
    let spectra = machine.spectra(&made.tokens, &made.global, frames).unwrap();
    check.stages(
        &machine,
        &[
            ("19b_content_embedding", "content"),
            ("30_content_embedding_from_indices", "content"),
            ("31_prenet_layer0_out", "prenet.layer0_out"),
            ("32_prenet_out", "prenet"),
            ("33_conv_upsample_bct", "upsampled"),
            ("34_interpolated_bct", "stretched"),
            ("35_prior_block0_bct", "prior0"),
            ("36_prior_out_bct", "prior1"),
            (
                "37_dec_layer0_attn_modulated",
                "decoder.layer0_attention_norm",
            ),
            ("37b_dec_layer0_attn_gate", "decoder.layer0_attention_gate"),
            ("38_dec_layer0_out", "decoder.layer0_out"),
            ("39_decoder_out", "decoder"),
            ("40_post_out_bct", "post"),
        ],
    );
    check.values("45_istft_linear_out_first16", &spectra, FEATURES);
    check.values("46_wave_out", &samples_of(&mut machine, &spectra), WAVES);

    let usual = machine.usual_samples(made.tokens.len());
    assert_eq!(usual, check.number("47_default_audio_length"));
    let spectra = machine
        .spectra(&made.tokens, &made.global, usual / 480)
        .unwrap();
    check.values(
        "48_wave_out_default_length",
        &samples_of(&mut machine, &spectra),
        WAVES,
    );

    let reference = check.wanted("50_vc_reference_wave", false);
    assert_eq!(
        machine.padding(reference.len()),
        check.number("51_vc_reference_padding")
    );
    let other = machine.encode(&reference).unwrap();
    assert_eq!(other.tokens, check.tokens("52_vc_reference_tokens"));
    check.values("53_vc_reference_global", &other.global, FEATURES);
    let spectra = machine
        .spectra(&made.tokens, &other.global, samples.len() / 480)
        .unwrap();
    check.values("54_vc_wave_out", &samples_of(&mut machine, &spectra), WAVES);
}

fn samples_of(machine: &mut Machine, spectra: &[f32]) -> Vec<f32> {
    machine.samples(spectra, || Ok(())).unwrap()
}

/// The variant with an up-sampler.
fn wave_44k(check: &Check, device: &Device) {
    let mut machine = machine(&Package::wave_44k(), device);
    let tokens = check.tokens("w44_01_tokens");
    let global = check.wanted("w44_02_global", false);
    let usual = machine.usual_samples(tokens.len());
    assert_eq!(usual, check.number("w44_03_default_audio_length"));
    let frames = usual / machine.frame_samples();
    assert_eq!(frames, check.number("w44_04_stft_length_before_upsampler"));
    let spectra = machine.spectra(&tokens, &global, frames).unwrap();
    check.stages(
        &machine,
        &[
            ("w44_31_prenet_layer0_out", "prenet.layer0_out"),
            ("w44_32_prenet_out", "prenet"),
            ("w44_33_conv_upsample_bct", "upsampled"),
            ("w44_34_interpolated_bct", "stretched"),
            ("w44_35_prior_block0_bct", "prior0"),
            ("w44_36_prior_out_bct", "prior1"),
            (
                "w44_37_dec_layer0_attn_modulated",
                "decoder.layer0_attention_norm",
            ),
            (
                "w44_37b_dec_layer0_attn_gate",
                "decoder.layer0_attention_gate",
            ),
            ("w44_38_dec_layer0_out", "decoder.layer0_out"),
            ("w44_39_decoder_out", "decoder"),
            ("w44_40_post_out_bct", "post"),
            ("w44_41_up0_convt_bct", "upsampler.conv0"),
            ("w44_41_up1_convt_bct", "upsampler.conv1"),
            ("w44_42_up0_snake_bct", "upsampler.snake0"),
            ("w44_42_up1_snake_bct", "upsampler.snake1"),
            ("w44_43_up0_resnet_bct", "upsampler.block0"),
            ("w44_43_up1_resnet_bct", "upsampler.block1"),
            ("w44_44_upsampler_out", "upsampler"),
        ],
    );
    check.values("w44_45_istft_linear_out_first32", &spectra, FEATURES);
    check.values(
        "w44_46_wave_out",
        &samples_of(&mut machine, &spectra),
        WAVES,
    );
}

/// The variant with mel spectra, and its vocoder.
fn mel(check: &Check, device: &Device) {
    let mut machine = machine(&Package::mel(), device);
    let tokens = check.tokens("mel_01_tokens");
    let global = check.wanted("mel_02_global", false);
    let usual = machine.usual_samples(tokens.len());
    assert_eq!(usual, check.number("mel_03_audio_length"));
    let frames = usual / machine.frame_samples();
    assert_eq!(frames, check.number("mel_04_mel_length"));
    let spectra = machine.spectra(&tokens, &global, frames).unwrap();
    check.stages(
        &machine,
        &[
            ("mel_05_prenet_out", "prenet"),
            ("mel_06_conv_upsample_bct", "upsampled"),
            ("mel_07_interpolated", "stretched"),
            ("mel_08_decoder_out", "decoder"),
            ("mel_09_postnet_conv0_bct", "postnet0"),
        ],
    );
    check.near(
        "mel_10_mel_out",
        &spectra,
        &check.wanted("mel_10_mel_out", true),
        FEATURES,
    );
    let filter = activation::filter().map(|tap| tap as f32);
    check.values("voc_00_activation_up_filter", &filter, 1e-6);
    check.values("voc_00_activation_down_filter", &filter, 1e-6);
    let seen = check.wanted("voc_01_mel", true);
    check.near("voc_01_mel", &spectra, &seen, FEATURES);
    let wave = machine.vocode(&seen).unwrap();
    check.stages(
        &machine,
        &[
            ("voc_02_conv_pre", "pre"),
            ("voc_03_up0", "up0"),
            ("voc_04_up0_res0_act0", "up0_block0_activation0"),
            ("voc_05_up0_res0", "up0_block0"),
            ("voc_06_up1", "up1"),
            ("voc_07_activation_post", "post_activation"),
            ("voc_08_conv_post", "post"),
        ],
    );
    check.values("voc_09_wave", &wave, WAVES);
}

fn every_stage(name: &str, device: &Device) {
    let check = Check::new(name);
    wave(&check, device);
    wave_44k(&check, device);
    mel(&check, device);
    check.all();
}

#[test]
fn stages_are_those_of_the_original_code() {
    every_stage("cpu", &Device::cpu(2).unwrap());
}

#[test]
fn so_they_are_without_code_of_ours() {
    let off = [
        "short-conv=off",
        "alias-free-snake=off",
        "blocked-product=off",
        "packed-projection=off",
        "flash-attention=off",
    ];
    let plain = Choices::from_options(None, off).unwrap();
    every_stage("plain", &Device::cpu(1).unwrap().with_fast_paths(plain));
}

#[cfg(unix)]
#[test]
fn so_they_are_on_a_device_with_memory_of_its_own() {
    every_stage("stand-in", &common::stand_in());
}

/// On the device that `AUDIOCPP_TEST_DEVICE` names (`cuda:0`), where it is set.
#[test]
fn so_they_are_on_the_device_that_is_named() {
    let Ok(name) = std::env::var("AUDIOCPP_TEST_DEVICE") else {
        println!("skipped: AUDIOCPP_TEST_DEVICE names no device");
        return;
    };
    let options = LoadOptions {
        device: name.clone(),
        ..LoadOptions::default()
    };
    let opened = options.on_device(&RunContext::new(), |device| Ok(device.clone()));
    every_stage(&name, &opened.unwrap().0);
}
