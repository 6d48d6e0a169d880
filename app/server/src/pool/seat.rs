//! The memory of worker processes.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

/// The processes of one model.
#[derive(Debug, Default)]
pub struct Seats {
    taken: Mutex<(u64, BTreeMap<u64, Holder>)>,
}

#[derive(Debug, Default)]
struct Holder {
    pid: Option<u32>,
    /// Bytes that it is going to need, while it loads.
    reserved: u64,
    /// Bytes that it said it holds.
    reported: u64,
}

/// The place of one process in the sum; it is given up on drop.
#[derive(Debug)]
pub struct Seat {
    seats: Arc<Seats>,
    id: u64,
    freed: Arc<Notify>,
}

impl Seats {
    fn lock(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Holder>)> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of all processes; those that load count as what they are going to need.
    pub fn bytes(&self) -> u64 {
        let held = |holder: &Holder| {
            let resident = holder.pid.and_then(resident).unwrap_or(holder.reported);
            resident.max(holder.reserved)
        };
        self.lock().1.values().map(held).sum()
    }

    /// How many processes there are.
    pub fn count(&self) -> usize {
        self.lock().1.len()
    }

    /// Ids of the processes.
    pub fn processes(&self) -> Vec<u32> {
        self.lock()
            .1
            .values()
            .filter_map(|holder| holder.pid)
            .collect()
    }

    /// Takes a place that counts as `bytes` until its process is [settled](Seat::settle). `freed`
    /// is told when it is given up.
    pub fn take(self: &Arc<Self>, bytes: u64, freed: Arc<Notify>) -> Seat {
        let mut taken = self.lock();
        taken.0 += 1;
        let id = taken.0;
        let holder = Holder {
            reserved: bytes,
            ..Holder::default()
        };
        taken.1.insert(id, holder);
        drop(taken);
        Seat {
            seats: self.clone(),
            id,
            freed,
        }
    }
}

impl Seat {
    /// The process has started.
    pub fn start(&self, pid: Option<u32>) {
        self.change(|holder| holder.pid = pid);
    }

    /// The process has loaded, or finished a job, and said how many bytes it holds.
    pub fn settle(&self, reported: u64) {
        self.change(|holder| {
            holder.reserved = 0;
            holder.reported = reported;
        });
    }

    fn change(&self, change: impl FnOnce(&mut Holder)) {
        if let Some(holder) = self.seats.lock().1.get_mut(&self.id) {
            change(holder);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.lock().1.remove(&self.id);
        self.freed.notify_waiters();
    }
}

/// Resident bytes of a process, where the system tells.
#[cfg(target_os = "linux")]
fn resident(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Resident bytes of a process, where the system tells: the worker's own word must do.
#[cfg(not(target_os = "linux"))]
fn resident(_: u32) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_until_they_are_given_up() {
        let (seats, freed) = (Arc::new(Seats::default()), Arc::new(Notify::new()));
        let one = seats.take(100, freed.clone());
        let two = seats.take(1 << 60, freed.clone());
        assert_eq!((seats.count(), seats.bytes()), (2, (1 << 60) + 100));
        drop(two);
        one.settle(70);
        assert_eq!((seats.count(), seats.bytes()), (1, 70));
        one.start(Some(std::process::id()));
        if cfg!(target_os = "linux") {
            assert!(seats.bytes() > 1 << 20, "{}", seats.bytes());
        }
        drop(one);
        assert_eq!((seats.count(), seats.bytes()), (0, 0));
    }
}
