//! Loading backend plugins and listing devices, without `unsafe` for the caller.
//!
//! ggml's own loader keeps quiet about failures in release builds and throws away the dynamic
//! loader's text. Each plugin is therefore opened and examined here first, and handed to ggml
//! only when it is known to be acceptable.
use crate::bindings as ggml;
use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    fmt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

/// The plugin interface version of the ggml that is built here (`GGML_BACKEND_API_VERSION`).
pub const API_VERSION: i32 = 3;

/// Why a plugin was not registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadError {
    /// The system's loader refused the file; its own words.
    Open(String),
    /// The file does not export `ggml_backend_init`, so it is no plugin of a dynamic build.
    NoEntry,
    /// The plugin scores 0: it says that it cannot work on this machine.
    Unsupported,
    /// `ggml_backend_init` returned null.
    InitFailed,
    /// The plugin was built against another plugin interface.
    ApiVersion {
        /// The version that the plugin states.
        found: i32,
    },
    /// A registry of this name is there already.
    Duplicate(String),
    /// ggml's own loader refused it after all checks passed.
    Rejected,
    /// ggml is linked into this program, and plugins would bring a second copy of it.
    LinkedIn,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Open(text) => write!(f, "the loader says: {text}"),
            LoadError::NoEntry => f.write_str(
                "it does not export ggml_backend_init; it was not built as a plugin (GGML_BACKEND_DL=ON)",
            ),
            LoadError::Unsupported => {
                f.write_str("the plugin says that it does not work on this machine (score 0)")
            }
            LoadError::InitFailed => f.write_str("ggml_backend_init returned null"),
            LoadError::ApiVersion { found } => write!(
                f,
                "it was built for plugin interface version {found}, this program has {API_VERSION}; use the plugin of the same release"
            ),
            LoadError::Duplicate(name) => {
                write!(f, "a backend named {name} is loaded already")
            }
            LoadError::Rejected => f.write_str("ggml refused it without a reason"),
            LoadError::LinkedIn => f.write_str(
                "this program has ggml linked in (feature `static`) and takes no plugins",
            ),
        }
    }
}

impl std::error::Error for LoadError {}

/// The kind of hardware behind a device, as its backend states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceClass {
    /// The host processor.
    Cpu,
    /// A GPU with its own memory.
    Gpu,
    /// A GPU that shares the host's memory.
    IntegratedGpu,
    /// A helper of the CPU backend, such as a BLAS library.
    Accelerator,
    /// Several devices behind one.
    Meta,
}

/// Identifies one device to ggml for the life of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceHandle(ggml::ggml_backend_dev_t);

// SAFETY: device objects are owned by their backend, are never freed and carry no thread affinity.
unsafe impl Send for DeviceHandle {}
// SAFETY: as above; ggml's device functions take them from any thread.
unsafe impl Sync for DeviceHandle {}

impl DeviceHandle {
    /// The pointer that ggml's functions take; valid for the life of the process.
    pub fn as_ptr(self) -> ggml::ggml_backend_dev_t {
        self.0
    }
}

/// What a backend says about one of its devices.
#[derive(Debug, Clone)]
pub struct DeviceEntry {
    /// Handle for opening it.
    pub handle: DeviceHandle,
    /// Name of the registry that owns it, such as `ROCm`.
    pub registry: String,
    /// Position within its registry.
    pub index: u32,
    /// ggml's name, such as `ROCm0`.
    pub name: String,
    /// The vendor's name for it.
    pub description: String,
    /// Lower-case PCI address, where the backend knows one.
    pub pci: Option<String>,
    /// Kind of hardware.
    pub class: DeviceClass,
    /// Free memory in bytes; 0 when unknown.
    pub memory_free: u64,
    /// Total memory in bytes; 0 when unknown.
    pub memory_total: u64,
    /// Whether weights may stay in mapped host memory.
    pub host_pointer: bool,
}

/// How grave a message of ggml is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// For those who look for a fault.
    Debug,
    /// For the curious.
    Info,
    /// Something is not as it should be.
    Warn,
    /// Something failed.
    Error,
}

static LOGGER: OnceLock<fn(LogLevel, &str)> = OnceLock::new();

/// Sends ggml's messages, line by line, to `logger` instead of standard error. The first call
/// decides; later ones change nothing.
pub fn set_logger(logger: fn(LogLevel, &str)) {
    if LOGGER.set(logger).is_ok() {
        // SAFETY: the callback is a plain function that lives as long as the process and keeps
        // no state of its own.
        unsafe { ggml::ggml_log_set(Some(forward), std::ptr::null_mut()) }
    }
}

/// # Safety
/// ggml calls this with a NUL-terminated text.
unsafe extern "C" fn forward(level: ggml::ggml_log_level, message: *const c_char, _: *mut c_void) {
    // Progress dots and the rest of a line; on their own they say nothing.
    if level == ggml::GGML_LOG_LEVEL_CONT || level == ggml::GGML_LOG_LEVEL_NONE {
        return;
    }
    let level = match level {
        ggml::GGML_LOG_LEVEL_ERROR => LogLevel::Error,
        ggml::GGML_LOG_LEVEL_WARN => LogLevel::Warn,
        ggml::GGML_LOG_LEVEL_DEBUG => LogLevel::Debug,
        _ => LogLevel::Info,
    };
    // SAFETY: NUL-terminated by ggml's promise.
    let text = unsafe { text(message) };
    let line = text.trim_end();
    if let (Some(logger), false) = (LOGGER.get(), line.is_empty()) {
        logger(level, line);
    }
}

/// A plugin that was opened here and accepted by ggml. It stays loaded until the process ends:
/// vendor runtimes do not survive being unloaded.
struct Plugin {
    path: PathBuf,
    registry: String,
    _library: libloading::Library,
}

static PLUGINS: Mutex<Vec<Plugin>> = Mutex::new(Vec::new());

fn plugins() -> MutexGuard<'static, Vec<Plugin>> {
    // A panic while the list was held leaves it whole: entries are only ever pushed.
    PLUGINS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open(path: &Path) -> Result<libloading::Library, LoadError> {
    let text = |error: libloading::Error| {
        let mut text = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(inner) = source {
            let inner_text = inner.to_string();
            if !text.contains(&inner_text) {
                text = format!("{text}: {inner_text}");
            }
            source = inner.source();
        }
        LoadError::Open(text)
    };
    // SAFETY: running a plugin's initialisers is what loading one means; the path was chosen by
    // the user or the package. Symbols are bound now, so a missing one is an error here instead
    // of a crash at its first call.
    #[cfg(unix)]
    let library = unsafe {
        use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
        Library::open(Some(path), RTLD_NOW | RTLD_LOCAL)
    };
    // SAFETY: as above. The altered search path finds libraries that lie beside the plugin.
    #[cfg(windows)]
    let library = unsafe {
        use libloading::os::windows::{LOAD_WITH_ALTERED_SEARCH_PATH, Library};
        Library::load_with_flags(path, LOAD_WITH_ALTERED_SEARCH_PATH)
    };
    library.map(Into::into).map_err(text)
}

fn score_of(library: &libloading::Library) -> Option<i32> {
    // SAFETY: ggml's plugin interface gives this symbol the signature `int (void)`.
    unsafe {
        let score = library
            .get::<unsafe extern "C" fn() -> c_int>(b"ggml_backend_score\0")
            .ok()?;
        Some(score())
    }
}

/// How well the plugin fits this machine: 0 not at all, greater is better; none if it keeps no
/// score. The file is opened and closed again.
pub fn score(path: &Path) -> Result<Option<i32>, LoadError> {
    Ok(score_of(&open(path)?))
}

/// Opens, examines and registers the plugin at `path`; returns the name of its registry.
/// Loading a path a second time returns the same name.
pub fn load(path: &Path) -> Result<String, LoadError> {
    if cfg!(feature = "static") {
        return Err(LoadError::LinkedIn);
    }
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut loaded = plugins();
    if let Some(known) = loaded.iter().find(|plugin| plugin.path == path) {
        return Ok(known.registry.clone());
    }
    let library = open(&path)?;
    if score_of(&library) == Some(0) {
        return Err(LoadError::Unsupported);
    }
    let registry = examine(&library)?;
    let taken = |name: &str| name.eq_ignore_ascii_case(&registry);
    if registries().iter().any(|name| taken(name)) {
        return Err(LoadError::Duplicate(registry));
    }
    let c_path = CString::new(path.as_os_str().as_encoded_bytes())
        .map_err(|_| LoadError::Open("the path holds a NUL byte".into()))?;
    // SAFETY: the path is NUL-terminated; the lock keeps ggml's registry to one writer.
    let accepted = unsafe { ggml::ggml_backend_load(c_path.as_ptr()) };
    if accepted.is_null() {
        return Err(LoadError::Rejected);
    }
    loaded.push(Plugin {
        path,
        registry: registry.clone(),
        _library: library,
    });
    Ok(registry)
}

/// Calls the entry point and returns the registry's name, if its interface is ours.
fn examine(library: &libloading::Library) -> Result<String, LoadError> {
    // SAFETY: the interface gives `ggml_backend_init` this signature; it may be called repeatedly.
    let registry = unsafe {
        library
            .get::<unsafe extern "C" fn() -> ggml::ggml_backend_reg_t>(b"ggml_backend_init\0")
            .map_err(|_| LoadError::NoEntry)?()
    };
    if registry.is_null() {
        return Err(LoadError::InitFailed);
    }
    // SAFETY: in every interface version the structure starts with the version, a C int.
    let found = unsafe { *registry.cast::<c_int>() };
    if found != API_VERSION {
        return Err(LoadError::ApiVersion { found });
    }
    // SAFETY: the version is ours, so the structure is what ggml's function expects.
    Ok(unsafe { text(ggml::ggml_backend_reg_name(registry)) })
}

/// Names of the registries that ggml knows at this moment.
pub fn registries() -> Vec<String> {
    // SAFETY: the indices are below the count that ggml returns.
    unsafe {
        (0..ggml::ggml_backend_reg_count())
            .map(|i| text(ggml::ggml_backend_reg_name(ggml::ggml_backend_reg_get(i))))
            .collect()
    }
}

/// The file a registry was loaded from; none if it is linked in or unknown.
pub fn path_of(registry: &str) -> Option<PathBuf> {
    plugins()
        .iter()
        .find(|plugin| plugin.registry.eq_ignore_ascii_case(registry))
        .map(|plugin| plugin.path.clone())
}

/// Build-time properties that a backend states, such as `NO_VMM = 1`; empty if it states none.
pub fn features(registry: &str) -> Vec<(String, String)> {
    let _lock = plugins();
    let Ok(name) = CString::new(registry) else {
        return Vec::new();
    };
    type GetFeatures =
        unsafe extern "C" fn(ggml::ggml_backend_reg_t) -> *const ggml::ggml_backend_feature;
    // SAFETY: the name is NUL-terminated; null answers are handled; the function behind this
    // well-known name has this type and returns an array that ends with a null name and lives as
    // long as the backend.
    unsafe {
        let registry = ggml::ggml_backend_reg_by_name(name.as_ptr());
        if registry.is_null() {
            return Vec::new();
        }
        let address = ggml::ggml_backend_reg_get_proc_address(
            registry,
            c"ggml_backend_get_features".as_ptr(),
        );
        if address.is_null() {
            return Vec::new();
        }
        let get = std::mem::transmute::<*mut c_void, GetFeatures>(address);
        let mut feature = get(registry);
        let mut list = Vec::new();
        while !feature.is_null() && !(*feature).name.is_null() {
            list.push((text((*feature).name), text((*feature).value)));
            feature = feature.add(1);
        }
        list
    }
}

/// The device at `index` of a registry; none if there is no such registry or device.
pub fn handle(registry: &str, index: u32) -> Option<DeviceHandle> {
    let _lock = plugins();
    let name = CString::new(registry).ok()?;
    // SAFETY: the name is NUL-terminated; null and out-of-range answers are handled.
    unsafe {
        let registry = ggml::ggml_backend_reg_by_name(name.as_ptr());
        let known =
            !registry.is_null() && (index as usize) < ggml::ggml_backend_reg_dev_count(registry);
        if !known {
            return None;
        }
        let device = ggml::ggml_backend_reg_dev_get(registry, index as usize);
        (!device.is_null()).then_some(DeviceHandle(device))
    }
}

/// Every device of every registered backend, in ggml's order.
pub fn devices() -> Vec<DeviceEntry> {
    let _lock = plugins();
    let mut list = Vec::new();
    // SAFETY: indices stay below the counts that ggml returns, and the pointers it gives are valid
    // for the life of the process.
    unsafe {
        for r in 0..ggml::ggml_backend_reg_count() {
            let registry = ggml::ggml_backend_reg_get(r);
            let registry_name = text(ggml::ggml_backend_reg_name(registry));
            for index in 0..ggml::ggml_backend_reg_dev_count(registry) {
                let device = ggml::ggml_backend_reg_dev_get(registry, index);
                if device.is_null() {
                    continue;
                }
                list.push(entry(device, &registry_name, index));
            }
        }
    }
    list
}

/// # Safety
/// `device` must be a device pointer that ggml returned.
unsafe fn entry(device: ggml::ggml_backend_dev_t, registry: &str, index: usize) -> DeviceEntry {
    // SAFETY: all-zero is a valid value of this structure of pointers, sizes and flags; the
    // backend fills it.
    let props = unsafe {
        let mut props: ggml::ggml_backend_dev_props = std::mem::zeroed();
        ggml::ggml_backend_dev_get_props(device, &mut props);
        props
    };
    let class = match props.type_ {
        ggml::GGML_BACKEND_DEVICE_TYPE_CPU => DeviceClass::Cpu,
        ggml::GGML_BACKEND_DEVICE_TYPE_GPU => DeviceClass::Gpu,
        ggml::GGML_BACKEND_DEVICE_TYPE_IGPU => DeviceClass::IntegratedGpu,
        ggml::GGML_BACKEND_DEVICE_TYPE_ACCEL => DeviceClass::Accelerator,
        _ => DeviceClass::Meta,
    };
    // SAFETY: the backend sets these to NUL-terminated strings or leaves them null.
    let (name, description, pci) = unsafe {
        (
            text(props.name),
            text(props.description),
            text(props.device_id),
        )
    };
    DeviceEntry {
        handle: DeviceHandle(device),
        registry: registry.to_owned(),
        index: u32::try_from(index).unwrap_or(u32::MAX),
        name,
        description,
        pci: Some(pci).filter(|pci| !pci.is_empty()),
        class,
        memory_free: props.memory_free as u64,
        memory_total: props.memory_total as u64,
        host_pointer: props.caps.buffer_from_host_ptr,
    }
}

/// # Safety
/// `pointer` must be null or point to a NUL-terminated string.
unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: not null, so NUL-terminated by the caller's promise.
    unsafe { CStr::from_ptr(pointer) }
        .to_string_lossy()
        .into_owned()
}

#[cfg(all(test, not(feature = "static")))]
mod tests {
    use super::*;

    fn build_dir() -> &'static Path {
        Path::new(crate::BUILD_LIB_DIR)
    }

    fn library_name(stem: &str) -> String {
        format!(
            "{}{stem}{}",
            std::env::consts::DLL_PREFIX,
            std::env::consts::DLL_SUFFIX
        )
    }

    #[test]
    fn the_cpu_plugin_loads_once_and_lists_a_device() {
        let path = std::fs::read_dir(build_dir())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.to_string_lossy().contains("ggml-cpu"))
            .expect("the build made a CPU plugin");
        assert_eq!(load(&path).unwrap(), "CPU");
        assert_eq!(load(&path).unwrap(), "CPU");
        assert_eq!(registries().iter().filter(|name| *name == "CPU").count(), 1);
        let cpu: Vec<_> = devices()
            .into_iter()
            .filter(|device| device.class == DeviceClass::Cpu)
            .collect();
        assert_eq!(cpu.len(), 1);
        assert!(cpu[0].memory_total > 0 && cpu[0].name == "CPU");
        assert!(!handle("CPU", 0).unwrap().as_ptr().is_null());
        assert_eq!(handle("CPU", 1), None);
        assert_eq!(handle("ROCm", 0), None);
        assert_eq!(path_of("cpu"), path.canonicalize().ok());
        assert!(features("CPU").iter().any(|(name, _)| name == "LLAMAFILE"));
        assert!(features("nothing").is_empty());
    }

    #[test]
    fn messages_reach_the_logger_without_line_ends() {
        static SEEN: Mutex<Vec<(LogLevel, String)>> = Mutex::new(Vec::new());
        set_logger(|level, text| SEEN.lock().unwrap().push((level, text.to_owned())));
        let say = |level, message: &CStr| {
            // SAFETY: the text is NUL-terminated.
            unsafe { forward(level, message.as_ptr(), std::ptr::null_mut()) }
        };
        say(ggml::GGML_LOG_LEVEL_WARN, c"odd\n");
        say(ggml::GGML_LOG_LEVEL_CONT, c".");
        say(ggml::GGML_LOG_LEVEL_INFO, c"\n");
        let seen = SEEN.lock().unwrap();
        assert!(seen.contains(&(LogLevel::Warn, "odd".into())));
        assert!(seen.iter().all(|(_, text)| text != "." && !text.is_empty()));
    }

    #[test]
    fn a_missing_file_keeps_the_loaders_text() {
        let error = load(&build_dir().join("libggml-absent.so")).unwrap_err();
        assert!(
            matches!(&error, LoadError::Open(text) if text.contains("libggml-absent")),
            "{error}"
        );
    }

    #[test]
    fn a_library_without_the_entry_point_is_refused() {
        let base = build_dir().join(library_name("ggml-base"));
        assert_eq!(load(&base), Err(LoadError::NoEntry));
        assert_eq!(score(&base), Ok(None));
    }
}
