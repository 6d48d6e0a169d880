//! The system around the GPUs: kernel, distribution, container, memory.
use super::{Host, number};
use serde::Serialize;

/// What a report about this machine starts with. No host or user name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct System {
    /// Operating system and version, from `/etc/os-release` where there is one.
    pub name: String,
    /// Kernel release.
    pub kernel: Option<String>,
    /// How it is known that this process runs in a container.
    pub container: Option<String>,
    /// Memory of the host in bytes.
    pub memory_total: Option<u64>,
    /// Memory a process can still get without swapping, in bytes.
    pub memory_available: Option<u64>,
    /// Most bytes that the kernel lets all GPUs map, from TTM's page limit.
    pub gpu_mappable: Option<u64>,
}

/// Reads the facts.
pub fn system(host: &Host) -> System {
    System {
        name: release_name(host).unwrap_or_else(|| std::env::consts::OS.to_owned()),
        kernel: host
            .read("/proc/sys/kernel/osrelease")
            .ok()
            .map(|text| text.trim().to_owned()),
        container: container(host),
        memory_total: meminfo(host, "MemTotal"),
        memory_available: memory_available(host),
        gpu_mappable: page_limit(host),
    }
}

fn release_name(host: &Host) -> Option<String> {
    let text = host.read("/etc/os-release").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(line.trim().trim_matches('"').to_owned())
}

/// Whether this is Windows' Linux: it has no KFD, and its GPU comes through `/dev/dxg`.
pub fn is_wsl(host: &Host) -> bool {
    host.read("/proc/sys/kernel/osrelease")
        .is_ok_and(|release| release.to_ascii_lowercase().contains("microsoft"))
}

fn container(host: &Host) -> Option<String> {
    for (file, name) in [("/.dockerenv", "Docker"), ("/run/.containerenv", "Podman")] {
        if host.path(file).exists() {
            return Some(format!("{name} ({file})"));
        }
    }
    let groups = host.read("/proc/1/cgroup").ok()?;
    ["docker", "kubepods", "containerd", "lxc"]
        .iter()
        .find(|word| groups.contains(*word))
        .map(|word| format!("{word} (/proc/1/cgroup)"))
}

/// A line of `/proc/meminfo`, in bytes.
fn meminfo(host: &Host, key: &str) -> Option<u64> {
    let text = host.read("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name == key).then_some(value)
    })?;
    number(line.trim().strip_suffix("kB")?)?.checked_mul(1024)
}

/// Memory a process can still get without swapping, in bytes; none if the system does not say.
pub fn memory_available(host: &Host) -> Option<u64> {
    meminfo(host, "MemAvailable")
}

/// TTM's limit in bytes. AMD's own kernel module has a copy of its own, which then counts.
fn page_limit(host: &Host) -> Option<u64> {
    ["amdttm", "ttm"].iter().find_map(|module| {
        let text = host
            .read(&format!("/sys/module/{module}/parameters/pages_limit"))
            .ok()?;
        number(&text)?.checked_mul(4096)
    })
}

/// The version parts of a kernel release such as `6.17.0-40-generic`.
pub fn kernel_version(release: &str) -> Option<(u32, u32, u32)> {
    let mut parts = release
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<u32>);
    let major = parts.next()?.ok()?;
    let minor = parts.next()?.ok()?;
    Some((major, minor, parts.next().and_then(Result::ok).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;

    #[test]
    fn reads_the_usual_files() {
        let machine = Fixture::new();
        machine.write("etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian 12\"\n");
        machine.write("proc/sys/kernel/osrelease", "6.17.0-40-generic\n");
        machine.write(
            "proc/meminfo",
            "MemTotal: 2048 kB\nMemAvailable:   1024 kB\n",
        );
        machine.write("sys/module/ttm/parameters/pages_limit", "1024\n");
        machine.write("run/.containerenv", "");
        let found = system(&machine.host(&[]));
        assert_eq!(found.name, "Debian 12");
        assert_eq!(found.memory_total, Some(2 << 20));
        assert_eq!(found.memory_available, Some(1 << 20));
        assert_eq!(found.gpu_mappable, Some(4 << 20));
        assert!(found.container.unwrap().starts_with("Podman"));
        assert_eq!(kernel_version(&found.kernel.unwrap()), Some((6, 17, 0)));
    }

    #[test]
    fn amds_own_module_counts_before_the_kernels() {
        let machine = Fixture::new();
        machine.write("sys/module/ttm/parameters/pages_limit", "1");
        machine.write("sys/module/amdttm/parameters/pages_limit", "2");
        assert_eq!(page_limit(&machine.host(&[])), Some(8192));
    }

    #[test]
    fn nothing_readable_is_nothing_known() {
        let found = system(&Fixture::new().host(&[]));
        assert_eq!(
            (found.kernel, found.memory_available, found.container),
            (None, None, None)
        );
        assert_eq!(kernel_version("linux"), None);
        assert_eq!(kernel_version("6.8"), Some((6, 8, 0)));
    }

    #[test]
    fn cgroups_and_wsl() {
        let machine = Fixture::new();
        machine.write("proc/1/cgroup", "0::/kubepods/besteffort/pod1\n");
        machine.write(
            "proc/sys/kernel/osrelease",
            "5.15.0-Microsoft-standard-WSL2",
        );
        let host = machine.host(&[]);
        assert!(system(&host).container.unwrap().contains("kubepods"));
        assert!(is_wsl(&host));
    }
}
