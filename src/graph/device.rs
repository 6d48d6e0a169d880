//! An opened device: one ggml backend stream, with the CPU beside it for what it cannot run.

use std::{
    collections::BTreeSet,
    ffi::{CStr, c_void},
    ptr::{self, NonNull},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use ggml_sys as sys;

use super::{GraphError, live::Live};
use crate::backend::{
    BackendType, Banner, Choices, Decision, DeviceInfo, FastPath, GraphPolicy, Inventory, backend,
};

/// How a device is opened.
#[derive(Debug, Clone)]
pub struct DeviceOptions {
    /// Threads of the CPU backend, also for operators that a GPU hands to it; at least 1.
    pub threads: usize,
    /// Refuse graphs with operators that the device cannot run, instead of using the CPU.
    pub strict: bool,
    /// Fast paths that the user forced or forbade.
    pub fast_paths: Choices,
}

impl Default for DeviceOptions {
    /// One thread for each core, CPU fallback allowed.
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        DeviceOptions {
            threads,
            strict: false,
            fast_paths: Choices::default(),
        }
    }
}

/// An opened device. Clones share it; one computation runs on it at a time.
#[derive(Clone)]
pub struct Device(pub(super) Arc<Opened>, Arc<Choices>);

/// A device's ggml objects. They are used only by the thread that holds `busy`.
pub(super) struct Opened {
    pub(super) main: NonNull<sys::ggml_backend>,
    /// The same backend as `main` where the device is the CPU.
    pub(super) cpu: NonNull<sys::ggml_backend>,
    pool: Option<ThreadPool>,
    busy: Mutex<Live>,
    name: String,
    description: String,
    pub(super) kind: BackendType,
    /// See [`Backend::view_alignment`](crate::backend::Backend::view_alignment).
    pub(super) view_alignment: usize,
    /// See [`Backend::sums_in_half`](crate::backend::Backend::sums_in_half).
    pub(super) sums_in_half: bool,
    pub(super) strict: bool,
    threads: usize,
    cancel: Arc<AtomicBool>,
    /// Operators that went to the CPU and were warned about.
    pub(super) warned: Mutex<BTreeSet<String>>,
}

// SAFETY: ggml's backend objects have no thread affinity, and every call that touches them takes
// `busy` first (see `Opened::lock`), so only one thread uses them at a time.
unsafe impl Send for Opened {}
// SAFETY: as above.
unsafe impl Sync for Opened {}

impl Device {
    /// The CPU with `threads` threads.
    ///
    /// # Errors
    /// [`GraphError::Device`] if no CPU backend is loaded.
    pub fn cpu(threads: usize) -> Result<Device, GraphError> {
        let handle = cpu_device()?;
        let options = DeviceOptions {
            threads,
            ..DeviceOptions::default()
        };
        Device::open_handle(handle, &options, GraphPolicy::none())
    }

    /// Opens a device that a loaded backend offers.
    ///
    /// # Errors
    /// [`GraphError::Device`] if its backend is not loaded, its driver refuses, or it is a GPU
    /// that computes wrong numbers (see [`canary`](super::canary())).
    pub fn open(info: &DeviceInfo, options: &DeviceOptions) -> Result<Device, GraphError> {
        let device = Device::open_unchecked(info, options)?;
        if info.is_gpu() {
            let found = super::canary(&device)?;
            tracing::debug!(error = found.error, "the canary lives");
        }
        tracing::info!("{}", Banner::of(info));
        Ok(device)
    }

    /// As [`Device::open`], without the check for wrong numbers.
    ///
    /// # Errors
    /// [`GraphError::Device`] if its backend is not loaded or its driver refuses.
    pub fn open_unchecked(
        info: &DeviceInfo,
        options: &DeviceOptions,
    ) -> Result<Device, GraphError> {
        let policy = backend(info.backend).map_or_else(GraphPolicy::none, |b| b.graphs(info));
        Device::open_handle(handle_of(info)?, options, policy)
    }

    /// Opens the device that `handle` names.
    ///
    /// # Errors
    /// [`GraphError::Device`] if its driver refuses, or if no CPU backend is loaded beside it.
    fn open_handle(
        handle: sys::plugins::DeviceHandle,
        options: &DeviceOptions,
        policy: GraphPolicy,
    ) -> Result<Device, GraphError> {
        let dev = handle.as_ptr();
        // SAFETY: a handle names a device that stays registered for the life of the process;
        // both functions return static strings.
        let (name, description) = unsafe {
            (
                text(sys::ggml_backend_dev_name(dev)),
                text(sys::ggml_backend_dev_description(dev)),
            )
        };
        let main = init(dev, &name)?;
        // SAFETY: as above.
        let is_cpu =
            unsafe { sys::ggml_backend_dev_type(dev) } == sys::GGML_BACKEND_DEVICE_TYPE_CPU;
        let cpu = if is_cpu {
            main
        } else {
            cpu_device()
                .and_then(|h| init(h.as_ptr(), "CPU"))
                .inspect_err(|_| {
                    // SAFETY: `main` was just created and nothing else holds it.
                    unsafe { sys::ggml_backend_free(main.as_ptr()) }
                })?
        };
        let cancel = Arc::new(AtomicBool::new(false));
        let pool = ThreadPool::start(cpu, options.threads.max(1), &cancel);
        let kind = kind_of(dev);
        let opened = Arc::new(Opened {
            main,
            cpu,
            pool,
            busy: Mutex::new(Live::new(policy)),
            name,
            description,
            kind,
            view_alignment: backend(kind).map_or(1, |b| b.view_alignment()),
            sums_in_half: backend(kind).is_some_and(|b| b.sums_in_half()),
            strict: options.strict,
            threads: options.threads.max(1),
            cancel,
            warned: Mutex::default(),
        });
        Ok(Device(opened, Arc::new(options.fast_paths.clone())))
    }

    /// The same opened device with other choices of fast paths.
    pub fn with_fast_paths(&self, choices: Choices) -> Device {
        Device(self.0.clone(), Arc::new(choices))
    }

    /// Whether models take a fast path here: the table's status, what the device can do, and the
    /// user's choice decide together.
    pub fn fast_path(&self, path: FastPath) -> bool {
        self.decide(path).on
    }

    /// The decision for every fast path, with its reason.
    pub fn fast_paths(&self) -> Vec<Decision> {
        FastPath::all().map(|path| self.decide(path)).collect()
    }

    fn decide(&self, path: FastPath) -> Decision {
        let dev = self.0.device();
        self.1
            // SAFETY: an opened device is registered for the life of the process.
            .decide(path, self.0.kind, |op| unsafe {
                super::capability::supports(dev, op)
            })
    }

    /// ggml's name of the device: `CPU`, `CUDA0`, `ROCm1`, ...
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The vendor's name of the hardware.
    pub fn description(&self) -> &str {
        &self.0.description
    }

    /// CPU threads that it was opened with.
    pub fn threads(&self) -> usize {
        self.0.threads
    }

    /// Whether the device is the CPU.
    pub fn is_cpu(&self) -> bool {
        self.0.main == self.0.cpu
    }

    /// Makes the computation that runs now, and later ones, stop with
    /// [`GraphError::Cancelled`] as soon as the backend notices, until called with `false`.
    pub fn cancel(&self, stop: bool) {
        self.0.cancel.store(stop, Ordering::Relaxed);
    }

    /// Free and total memory in bytes as the backend tells it; 0 means unknown.
    pub fn memory(&self) -> (usize, usize) {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the device outlives its backend; both pointers are valid for the call.
        unsafe {
            let dev = sys::ggml_backend_get_device(self.0.main.as_ptr());
            sys::ggml_backend_dev_memory(dev, &mut free, &mut total);
        }
        (free, total)
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Device").field(&self.0.name).finish()
    }
}

impl Opened {
    /// Exclusive use of the device; held around every ggml call that computes, copies or allocates.
    pub(super) fn lock(&self) -> MutexGuard<'_, Live> {
        // The guard protects ggml's state, which a Rust panic cannot leave half-changed.
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn device(&self) -> sys::ggml_backend_dev_t {
        // SAFETY: `main` is alive as long as `self`.
        unsafe { sys::ggml_backend_get_device(self.main.as_ptr()) }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: no graph or buffer is left (each holds an `Arc` of this); the pool is freed
        // after the backend that uses it, by field order below.
        unsafe {
            if self.main != self.cpu {
                sys::ggml_backend_free(self.main.as_ptr());
            }
            sys::ggml_backend_free(self.cpu.as_ptr());
        }
        drop(self.pool.take());
    }
}

/// ggml's worker threads, kept between computations: starting them for each would cost more
/// than a decoding step of a small model.
struct ThreadPool {
    pool: *mut sys::ggml_threadpool,
    free: unsafe extern "C" fn(*mut sys::ggml_threadpool),
}

type NewPool = unsafe extern "C" fn(*mut sys::ggml_threadpool_params) -> *mut sys::ggml_threadpool;
type FreePool = unsafe extern "C" fn(*mut sys::ggml_threadpool);
type SetPool = unsafe extern "C" fn(sys::ggml_backend_t, *mut sys::ggml_threadpool);
type SetThreads = unsafe extern "C" fn(sys::ggml_backend_t, i32);
type AbortCallback = unsafe extern "C" fn(*mut c_void) -> bool;
type SetAbort = unsafe extern "C" fn(sys::ggml_backend_t, Option<AbortCallback>, *mut c_void);

impl ThreadPool {
    /// Gives `cpu` its threads and the flag that stops it. `None` where the backend offers no
    /// pool of its own; it then starts threads for each computation.
    fn start(
        cpu: NonNull<sys::ggml_backend>,
        threads: usize,
        cancel: &Arc<AtomicBool>,
    ) -> Option<ThreadPool> {
        let threads = threads.min(sys::GGML_MAX_N_THREADS as usize) as i32;
        // SAFETY: the CPU backend publishes these functions under these names with these
        // signatures (ggml-cpu.h, ggml-backend.h). The flag outlives the backend: `Opened` owns
        // both and frees the backend first.
        unsafe {
            let dev = sys::ggml_backend_get_device(cpu.as_ptr());
            let reg = sys::ggml_backend_dev_backend_reg(dev);
            let find = |name: &CStr| {
                let address = sys::ggml_backend_reg_get_proc_address(reg, name.as_ptr());
                (!address.is_null()).then_some(address)
            };
            if let Some(set) = find(c"ggml_backend_set_n_threads") {
                std::mem::transmute::<*mut c_void, SetThreads>(set)(cpu.as_ptr(), threads);
            }
            if let Some(set) = find(c"ggml_backend_set_abort_callback") {
                std::mem::transmute::<*mut c_void, SetAbort>(set)(
                    cpu.as_ptr(),
                    Some(stop_requested),
                    Arc::as_ptr(cancel) as *mut c_void,
                );
            }
            let new = std::mem::transmute::<*mut c_void, NewPool>(find(c"ggml_threadpool_new")?);
            let free = std::mem::transmute::<*mut c_void, FreePool>(find(c"ggml_threadpool_free")?);
            let set = std::mem::transmute::<*mut c_void, SetPool>(find(
                c"ggml_backend_cpu_set_threadpool",
            )?);
            let mut params = sys::ggml_threadpool_params {
                cpumask: [false; sys::GGML_MAX_N_THREADS as usize],
                n_threads: threads,
                prio: sys::GGML_SCHED_PRIO_NORMAL,
                // Workers spin for a moment between graphs before they sleep: a decoding step
                // follows the one before within microseconds.
                poll: 50,
                strict_cpu: false,
                // They sleep until the first graph comes, and leave the cores to the loader.
                paused: true,
            };
            let pool = new(&mut params);
            if pool.is_null() {
                return None;
            }
            set(cpu.as_ptr(), pool);
            Some(ThreadPool { pool, free })
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        // SAFETY: made by the matching `ggml_threadpool_new`, freed once, its backend is gone.
        unsafe { (self.free)(self.pool) }
    }
}

/// ggml asks this between operators.
unsafe extern "C" fn stop_requested(flag: *mut c_void) -> bool {
    // SAFETY: `ThreadPool::start` passes a pointer to an `AtomicBool` that outlives the backend.
    unsafe { (*flag.cast::<AtomicBool>()).load(Ordering::Relaxed) }
}

/// The CPU's handle; loads its backend on first use.
fn cpu_device() -> Result<sys::plugins::DeviceHandle, GraphError> {
    let failed = |problem: String| GraphError::Device {
        device: "CPU".into(),
        problem,
    };
    let inventory = Inventory::discover(&[BackendType::Cpu]);
    let cpu = inventory
        .devices
        .iter()
        .find(|d| d.backend == BackendType::Cpu);
    let cpu = cpu.ok_or_else(|| failed(inventory.why_missing(BackendType::Cpu)))?;
    handle_of(cpu)
}

fn handle_of(info: &DeviceInfo) -> Result<sys::plugins::DeviceHandle, GraphError> {
    sys::plugins::handle(&info.registry, info.index).ok_or_else(|| GraphError::Device {
        device: info.spec(),
        problem: "its backend is not loaded in this process".into(),
    })
}

fn init(
    dev: sys::ggml_backend_dev_t,
    name: &str,
) -> Result<NonNull<sys::ggml_backend>, GraphError> {
    // SAFETY: `dev` is a registered device; null parameters ask for the defaults.
    NonNull::new(unsafe { sys::ggml_backend_dev_init(dev, ptr::null()) }).ok_or_else(|| {
        GraphError::Device {
            device: name.to_owned(),
            problem:
                "its driver did not start a stream; `audiocpp_cli doctor` looks for the reason"
                    .into(),
        }
    })
}

/// The kind of a registered device, `Best` for one of an unknown registry.
fn kind_of(dev: sys::ggml_backend_dev_t) -> BackendType {
    // SAFETY: a registered device stays for the life of the process; its registry's name is a
    // static string.
    let registry = unsafe {
        text(sys::ggml_backend_reg_name(
            sys::ggml_backend_dev_backend_reg(dev),
        ))
    };
    BackendType::of_registry(&registry).unwrap_or(BackendType::Best)
}

/// # Safety
/// `s` must be null or a NUL-terminated string.
unsafe fn text(s: *const std::ffi::c_char) -> String {
    if s.is_null() {
        return String::new();
    }
    // SAFETY: by the caller's promise.
    unsafe { CStr::from_ptr(s) }.to_string_lossy().into_owned()
}
