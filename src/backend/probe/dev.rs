//! Whether this process may open the device files that HIP needs, and if not, why.
use super::Host;
use serde::Serialize;
use std::{
    fs::OpenOptions,
    io,
    path::{Path, PathBuf},
};

/// Opens a device file for reading and writing, and closes it again. A test injects failures.
pub trait Opener {
    /// Tries it.
    fn open(&self, path: &Path) -> io::Result<()>;
}

/// The real thing.
pub struct System;

impl Opener for System {
    fn open(&self, path: &Path) -> io::Result<()> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map(drop)
    }
}

/// One device file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// The path as on the machine.
    pub path: String,
    /// Permission bits, on systems that have them.
    pub mode: Option<u32>,
    /// The group that owns it: number, and name if the group file has one.
    pub group: Option<(u32, Option<String>)>,
    /// Whether this process belongs to that group; none if groups are unknown.
    pub member: Option<bool>,
    /// Why it cannot be opened; none if it can.
    pub error: Option<String>,
    /// Whether the file is not there at all.
    pub absent: bool,
}

/// The groups of this process, from its status file; none where there is none.
fn groups(host: &Host) -> Option<Vec<u32>> {
    let status = host.read("/proc/self/status").ok()?;
    let line = |key: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(key))
            .map(|rest| rest.split_whitespace().filter_map(|n| n.parse().ok()))
    };
    // The second number of the Gid line is the effective group.
    let effective = line("Gid:")?.nth(1);
    Some(line("Groups:")?.chain(effective).collect())
}

/// The name of a group, from the group file.
fn group_name(host: &Host, id: u32) -> Option<String> {
    let text = host.read("/etc/group").ok()?;
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let number: u32 = fields.nth(1)?.parse().ok()?;
        (number == id).then(|| name.to_owned())
    })
}

#[cfg(unix)]
fn owner(path: &Path) -> Option<(u32, u32)> {
    use std::os::unix::fs::MetadataExt;
    let meta = path.metadata().ok()?;
    Some((meta.mode() & 0o7777, meta.gid()))
}

#[cfg(not(unix))]
fn owner(_: &Path) -> Option<(u32, u32)> {
    None
}

fn node(host: &Host, path: PathBuf, opener: &dyn Opener) -> Node {
    let owner = owner(&path);
    let groups = groups(host);
    let outcome = opener.open(&path);
    let absent = matches!(&outcome, Err(error) if error.kind() == io::ErrorKind::NotFound);
    Node {
        path: host.shown(&path),
        mode: owner.map(|(mode, _)| mode),
        group: owner.map(|(_, gid)| (gid, group_name(host, gid))),
        member: owner
            .zip(groups)
            .map(|((_, gid), groups)| groups.contains(&gid)),
        error: outcome.err().map(|error| error.to_string()),
        absent,
    }
}

/// `/dev/kfd`, the compute driver's door.
pub fn kfd(host: &Host, opener: &dyn Opener) -> Node {
    node(host, host.path("/dev/kfd"), opener)
}

/// The render nodes in `/dev/dri`. In a container only those that it was given are there.
pub fn render(host: &Host, opener: &dyn Opener) -> Vec<(u32, Node)> {
    host.names("/dev/dri")
        .iter()
        .filter_map(|name| {
            let minor = name.strip_prefix("renderD")?.parse().ok()?;
            let path = host.path(&format!("/dev/dri/{name}"));
            Some((minor, node(host, path, opener)))
        })
        .collect()
}

impl Node {
    /// One line of evidence.
    pub fn evidence(&self) -> String {
        if self.absent {
            return format!("{} is not there", self.path);
        }
        let owner = match (&self.mode, &self.group) {
            (Some(mode), Some((id, Some(name)))) => format!(", mode {mode:o}, group {name} ({id})"),
            (Some(mode), Some((id, None))) => format!(", mode {mode:o}, group {id}"),
            _ => String::new(),
        };
        match &self.error {
            None => format!("{} opens{owner}", self.path),
            Some(error) => format!("{}: {error}{owner}", self.path),
        }
    }

    /// What makes it open: group membership on a host, the device and group in a container.
    pub fn fix(&self, container: bool) -> String {
        let group = match &self.group {
            Some((_, Some(name))) => name.clone(),
            Some((id, None)) => id.to_string(),
            None => "render".to_owned(),
        };
        if container {
            let id = self.group.as_ref().map_or(group, |(id, _)| id.to_string());
            return format!(
                "start the container with --device /dev/kfd --device /dev/dri --group-add {id}"
            );
        }
        if self.absent {
            return "load the amdgpu driver: sudo modprobe amdgpu, then look at dmesg".to_owned();
        }
        match self.member {
            Some(true) => format!(
                "the group may not open it either: check its mode with ls -l {}",
                self.path
            ),
            _ => format!("sudo usermod -a -G {group} $USER, then log out and in again"),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::fixture::{Fixture, Gpu};
    use super::*;

    /// Answers every open with one error number; 0 opens.
    pub(crate) struct Errno(pub i32);

    impl Opener for Errno {
        fn open(&self, _: &Path) -> io::Result<()> {
            match self.0 {
                0 => Ok(()),
                number => Err(io::Error::from_raw_os_error(number)),
            }
        }
    }

    #[test]
    fn files_that_open_and_files_that_are_absent() {
        let machine = Fixture::new().gpu(1, &Gpu::rx7900());
        let host = machine.host(&[]);
        assert_eq!(kfd(&host, &System).error, None);
        let nodes = render(&host, &System);
        assert_eq!((nodes.len(), nodes[0].0), (1, 128));
        machine.remove("dev/kfd");
        let gone = kfd(&host, &System);
        assert!(gone.absent && gone.evidence().contains("not there"));
        assert!(gone.fix(false).contains("modprobe amdgpu"));
    }

    #[cfg(unix)]
    #[test]
    fn every_errno_keeps_the_systems_words_and_has_a_fix() {
        let machine = Fixture::new().gpu(1, &Gpu::rx7900());
        let gid = owner(&machine.path("dev/kfd")).unwrap().1;
        machine.write("etc/group", &format!("wheel:x:99999:\nrender:x:{gid}:\n"));
        machine.write(
            "proc/self/status",
            "Uid:\t1\t1\t1\t1\nGid:\t7\t7\t7\t7\nGroups:\t4 24\n",
        );
        let host = machine.host(&[]);
        // EACCES, EINVAL, EBUSY.
        for (errno, words) in [(13, "ermission"), (22, "nvalid"), (16, "busy")] {
            let node = kfd(&host, &Errno(errno));
            let evidence = node.evidence();
            assert!(evidence.contains(words), "{evidence}");
            assert!(
                evidence.contains(&format!("group render ({gid})")),
                "{evidence}"
            );
            assert_eq!(node.member, Some(false));
            assert!(node.fix(false).contains("usermod -a -G render"));
            assert!(node.fix(true).contains(&format!("--group-add {gid}")));
        }
        machine.write(
            "proc/self/status",
            &format!("Gid:\t7\t{gid}\t7\t7\nGroups:\t\n"),
        );
        let node = kfd(&host, &Errno(13));
        assert_eq!(node.member, Some(true));
        assert!(node.fix(false).contains("mode"));
    }
}
