//! From a file to a device: names, shapes, types, transforms.

mod weights_files;

use audiocpp::{
    graph::{DType, Device, DeviceTensor, Element, Graph},
    weights::{Computed, Error, HostTensor, LoadError, Loader, Policy, Source, open_bytes},
};
use weights_files::{self as files, quarters};

fn device() -> Device {
    Device::cpu(2).expect("the CPU is always there")
}

fn source(tensors: &[(&str, &str, &[usize], &[u8])]) -> Box<dyn Source> {
    open_bytes("model.safetensors", files::safetensors(tensors).into()).unwrap()
}

fn read<T: Element>(tensor: &DeviceTensor) -> Vec<T> {
    tensor.read::<T>().unwrap()
}

#[test]
fn weights_arrive_in_the_policy_s_types() {
    let bias: Vec<u8> = [0x3c00u16, 0xc000]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let source = source(&[
        ("net.weight", "F32", &[2, 3], &quarters(6)),
        ("net.bias", "F16", &[2, 1], &bias),
        (
            "net.ids",
            "I64",
            &[2],
            &[5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0],
        ),
    ]);
    for (policy, dtype) in [
        (Policy::Native, DType::F32),
        (Policy::F16, DType::F16),
        (Policy::Q8_0, DType::F16),
    ] {
        let device = device();
        let loader = Loader::new(&*source, &device, policy);
        let net = loader.root().pp("net");
        let weight = net.get(&[2, 3], "weight").unwrap();
        let bias = net.get(&[2], "bias").unwrap();
        let ids = net.get_as(DType::I32, &[2], "ids").unwrap();
        let pinned = net.get_f32(&[2, 3], "weight").unwrap();
        assert!(net.get_opt(&[2], "gain").unwrap().is_none());
        assert!(loader.unused().is_empty());
        let buffer = loader.finish().unwrap();
        assert!(buffer.bytes() > 0);
        assert_eq!((weight.dtype(), weight.shape()), (dtype, &[2, 3][..]));
        assert_eq!((bias.dtype(), bias.shape()), (DType::F32, &[2][..]));
        assert_eq!(read::<f32>(&bias), [1.0, -2.0]);
        assert_eq!(read::<i32>(&ids), [5, 6]);
        assert_eq!(read::<f32>(&pinned), [0.0, 0.25, 0.5, 0.75, 1.0, 1.25]);
        if dtype == DType::F16 {
            let halves = read::<half::f16>(&weight);
            assert_eq!(
                halves.iter().map(|v| v.to_f32()).collect::<Vec<_>>(),
                read::<f32>(&pinned)
            );
        }
    }
}

#[test]
fn a_matrix_is_quantised_at_load() {
    // Smaller matrices stay as they are.
    const ROWS: usize = 64;
    let values: Vec<f32> = (0..ROWS * 256).map(|i| (i as f32 * 0.1).sin()).collect();
    let source = source(&[("w", "F32", &[ROWS, 256], bytemuck::cast_slice(&values))]);
    for (policy, dtype, tolerance) in [
        (Policy::Q8_0, DType::Q8_0, 0.005),
        (Policy::Q4K, DType::Q4_K, 0.1),
    ] {
        let device = device();
        let loader = Loader::new(&*source, &device, policy);
        let w = loader.root().get(&[ROWS, 256], "w").unwrap();
        loader.finish().unwrap();
        assert_eq!(w.dtype(), dtype);
        // A product with the identity gives the matrix back, transposed.
        let mut graph = Graph::build(&device, |g| {
            let identity = g.input("identity", DType::F32, &[256, 256]);
            g.output("transposed", identity.matmul_t(g.stored(&w)));
            Ok(())
        })
        .unwrap();
        let identity: Vec<f32> = (0..256 * 256)
            .map(|i| f32::from(u8::from(i % 257 == 0)))
            .collect();
        graph.write("identity", &identity).unwrap();
        graph.compute().unwrap();
        let back = HostTensor::new(&[256, ROWS], graph.read::<f32>("transposed").unwrap());
        let back = back.transpose().data;
        let worst = values
            .iter()
            .zip(&back)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f32::max);
        assert!(worst > 0.0 && worst < tolerance, "{policy}: {worst}");
    }
}

#[test]
fn tensors_are_stacked_split_and_transformed() {
    let source = source(&[
        ("q", "F32", &[2, 3], &quarters(6)),
        ("v", "F32", &[1, 3], &quarters(3)),
        ("conv.weight", "F32", &[1, 2, 3], &quarters(6)),
        ("conv.weight_g", "F32", &[1, 1, 1], &quarters(2)[4..]),
    ]);
    let device = device();
    let loader = Loader::new(&*source, &device, Policy::Native);
    let root = loader.root();
    let qkv = root
        .rows(&[5, 3], &[(Some("q"), 2), (None, 2), (Some("v"), 1)])
        .unwrap();
    let second = root.slice(&[2, 3], "q", 1..2).unwrap();
    let conv = root.conv1d(1, 2, 3, "conv.weight").unwrap();
    let inputs: [(&str, &[usize]); 2] = [("conv.weight", &[1, 2, 3]), ("conv.weight_g", &[1])];
    let normed = root
        .get_with(&[1, 6], "conv", inputs, |[v, g]| {
            v.weight_norm(&g).conv_matrix()
        })
        .unwrap();
    assert_eq!(
        root.host(&[3], "v").unwrap(),
        HostTensor::new(&[3], vec![0.0, 0.25, 0.5])
    );
    assert!(root.slice(&[2, 3], "q", 1..3).is_err());
    loader.finish().unwrap();
    assert_eq!(read::<f32>(&qkv)[..6], [0.0, 0.25, 0.5, 0.75, 1.0, 1.25]);
    assert_eq!(
        read::<f32>(&qkv)[6..],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.25, 0.5]
    );
    assert_eq!(read::<f32>(&second), [0.75, 1.0, 1.25]);
    assert_eq!(read::<f32>(&conv), [0.0, 0.75, 0.25, 1.0, 0.5, 1.25]);
    let norm = read::<f32>(&normed)
        .iter()
        .map(|v| v * v)
        .sum::<f32>()
        .sqrt();
    assert!((norm - 0.25).abs() < 1e-6, "{norm}");
}

#[test]
fn errors_name_the_file_the_tensor_and_what_is_near() {
    let nan = f32::NAN.to_le_bytes();
    let source = source(&[
        ("encoder.layer.0.weight", "F32", &[2, 3], &quarters(6)),
        ("encoder.layer.0.bias", "F32", &[2], &quarters(2)),
        ("bad", "F32", &[1], &nan),
        (
            "large",
            "F32",
            &[2, 2],
            bytemuck::cast_slice(&[0.0f32, 0.0, 1e6, 0.0]),
        ),
    ]);
    let device = device();
    let loader = Loader::new(&*source, &device, Policy::F16);
    let root = loader.root();
    let error = root
        .get(&[2, 3], "encoder.layers.0.weight")
        .err()
        .unwrap()
        .to_string();
    for part in [
        "model.safetensors",
        "encoder.layers.0.weight",
        "[2, 3]",
        "`encoder.layer.0.weight` [2, 3]",
    ] {
        assert!(error.contains(part), "{error}");
    }
    let error = root.get(&[3, 2], "encoder.layer.0.weight").err().unwrap();
    assert!(matches!(
        error,
        LoadError::Weights(Error::Shape { found, wanted, .. }) if found == [2, 3] && wanted == [3, 2]
    ));
    let fails = |name: &str, shape: &[usize]| {
        let loader = Loader::new(&*source, &device, Policy::F16);
        loader.root().get(shape, name).unwrap();
        loader.finish().err().unwrap()
    };
    let error = fails("bad", &[1]);
    assert!(
        matches!(&error, LoadError::Weights(Error::NonFinite { name, index: 0, .. }) if name == "bad"),
        "{error}"
    );
    let error = fails("large", &[2, 2]);
    assert!(
        matches!(&error, LoadError::Weights(Error::OutOfRange { name, index: 2, .. }) if name == "large"),
        "{error}"
    );
}

#[test]
fn computed_weights_have_every_name() {
    let source = Computed::new(|name, shape| vec![name.len() as f32; shape.iter().product()]);
    let device = device();
    let loader = Loader::new(&source, &device, Policy::Native);
    let w = loader.root().pp("a").get(&[2, 2], "b").unwrap();
    loader.finish().unwrap();
    assert_eq!(read::<f32>(&w), [3.0; 4]);
}
