//! How many threads are worth starting.

use std::{collections::BTreeSet, fs, thread};

/// Physical cores that this process may use: hyper-threads of one core count once, and an
/// affinity mask or a container's CPU share is respected. At least 1.
pub fn physical_cores() -> usize {
    let usable = thread::available_parallelism().map_or(1, |n| n.get());
    match linux_physical_cores() {
        Some(cores) if cores > 0 => cores.min(usable),
        _ => usable,
    }
}

/// Cores of the CPUs in this process's affinity mask, from `/proc` and `/sys`.
fn linux_physical_cores() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let mut cores = BTreeSet::new();
    for cpu in parse_cpu_list(list)? {
        let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        cores.insert(fs::read_to_string(file).ok()?);
    }
    Some(cores.len())
}

/// Reads the kernel's list form, `0-3,8`; `None` if it is something else.
fn parse_cpu_list(list: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        if last < first || last - first > 65_536 {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_cpu_lists_are_read() {
        assert_eq!(parse_cpu_list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_cpu_list("7"), Some(vec![7]));
        assert_eq!(parse_cpu_list("3-1"), None);
        assert_eq!(parse_cpu_list("a"), None);
    }

    #[test]
    fn at_least_one_core_and_no_more_than_may_be_used() {
        let usable = thread::available_parallelism().unwrap().get();
        assert!((1..=usable).contains(&physical_cores()));
    }
}
