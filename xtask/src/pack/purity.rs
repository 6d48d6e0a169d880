//! Link purity: which libraries a file needs at run time, and which it must not.

use super::Backend;
use anyhow::{Context, Result, bail};
use object::{
    Endianness, Object,
    elf::{DT_NEEDED, FileHeader64},
    read::elf::{Dyn, FileHeader},
};
use std::{collections::BTreeSet, fs, path::Path};

/// Libraries of each vendor, by the beginning of their names without `lib`.
const NVIDIA: [&str; 6] = ["cudart", "cublas", "cuda.", "nvcuda", "nvrtc", "nccl"];
const AMD: [&str; 6] = [
    "amdhip64",
    "hipblas",
    "rocblas",
    "hiprtc",
    "hsa-runtime64",
    "rccl",
];
const VULKAN: [&str; 2] = ["vulkan.", "vulkan-1"];

/// Names of the libraries that an ELF or PE file asks its loader for.
pub fn needed(path: &Path) -> Result<BTreeSet<String>> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let broken = || format!("{} is no library that can be examined", path.display());
    if bytes.starts_with(b"\x7fELF") {
        return needed_by_elf(&bytes).with_context(broken);
    }
    let file = object::File::parse(&*bytes).with_context(broken)?;
    let imports = file.imports().with_context(broken)?;
    Ok(imports
        .iter()
        .map(|import| String::from_utf8_lossy(import.library()).into_owned())
        .filter(|name| !name.is_empty())
        .collect())
}

fn needed_by_elf(bytes: &[u8]) -> Result<BTreeSet<String>> {
    let header = FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, bytes)?;
    let mut names = BTreeSet::new();
    if let Some((entries, strings)) = sections.dynamic(endian, bytes)? {
        let strings = sections.strings(endian, bytes, strings)?;
        for entry in entries {
            if entry.tag32(endian) == Some(DT_NEEDED) {
                let name = entry.string(endian, strings)?;
                names.insert(String::from_utf8_lossy(name).into_owned());
            }
        }
    }
    Ok(names)
}

fn is_one_of(name: &str, libraries: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    let plain = name.strip_prefix("lib").unwrap_or(&name);
    libraries.iter().any(|library| plain.starts_with(library))
}

/// Fails if a file of this backend needs another vendor's runtime, or lacks its own.
pub fn check(backend: Backend, file: &str, needed: &BTreeSet<String>) -> Result<()> {
    let (own, foreign): (&[&str], Vec<&str>) = match backend {
        Backend::Hip => (&AMD, [&NVIDIA[..], &VULKAN].concat()),
        Backend::Cuda => (&NVIDIA, [&AMD[..], &VULKAN].concat()),
        Backend::Vulkan => (&VULKAN, [&AMD[..], &NVIDIA].concat()),
        Backend::Cpu | Backend::Metal => (&[], [&AMD[..], &NVIDIA, &VULKAN].concat()),
    };
    if let Some(name) = needed.iter().find(|name| is_one_of(name, &foreign)) {
        bail!(
            "{file} of the {backend:?} pack needs {name}: it was built or linked with the wrong toolkit"
        );
    }
    let plugin = file.contains(&format!("{backend:?}").to_lowercase());
    if plugin && !own.is_empty() && !needed.iter().any(|name| is_one_of(name, own)) {
        let all: Vec<&str> = needed.iter().map(String::as_str).collect();
        bail!(
            "{file} needs no {backend:?} runtime at all (it needs {})",
            all.join(", ")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn foreign_and_absent_runtimes_are_refused() {
        let hip = set(&[
            "libggml-base.so.0",
            "libamdhip64.so.7",
            "libhipblas.so.3",
            "libc.so.6",
        ]);
        check(Backend::Hip, "libggml-hip.so", &hip).unwrap();
        let mixed = set(&["libamdhip64.so.7", "libcublas.so.13"]);
        let error = check(Backend::Hip, "libggml-hip.so", &mixed)
            .unwrap_err()
            .to_string();
        assert!(error.contains("libcublas.so.13"), "{error}");
        assert!(check(Backend::Hip, "libggml-hip.so", &set(&["libc.so.6"])).is_err());
        assert!(check(Backend::Cuda, "libggml-cuda.so", &hip).is_err());
        check(
            Backend::Cuda,
            "ggml-cuda.dll",
            &set(&["cublas64_13.dll", "nvcuda.dll"]),
        )
        .unwrap();
        assert!(check(Backend::Cpu, "libggml-cpu.so", &hip).is_err());
        check(Backend::Cpu, "libggml-base.so", &set(&["libm.so.6"])).unwrap();
        assert!(
            check(
                Backend::Vulkan,
                "libggml-vulkan.so",
                &set(&["libcuda.so.1"])
            )
            .is_err()
        );
        check(
            Backend::Vulkan,
            "libggml-vulkan.so",
            &set(&["libvulkan.so.1"]),
        )
        .unwrap();
    }

    /// The test program itself is a file that needs the C library and no GPU.
    #[cfg(target_os = "linux")]
    #[test]
    fn needed_reads_a_real_file() {
        let found = needed(&std::env::current_exe().unwrap()).unwrap();
        assert!(
            found.iter().any(|name| name.starts_with("libc.so")),
            "{found:?}"
        );
        check(Backend::Cpu, "test", &found).unwrap();
        let text = crate::sh::root().join("Cargo.toml");
        assert!(needed(&text).is_err());
    }
}
