//! Work shared between the threads that compute a graph.

use std::{
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering},
};

/// Which part of the work one thread does.
#[derive(Debug, Clone, Copy)]
pub(in crate::graph) struct Share<'n> {
    pub index: usize,
    pub of: usize,
    /// The next job that no share has taken.
    pub next: &'n AtomicUsize,
}

impl<'n> Share<'n> {
    /// Of the numbers below `count` those that this share takes: the next one whenever it has done
    /// one, so that a thread that was held up leaves more of them to the others. To be asked for
    /// at most once in a run, and by every share.
    pub fn of_jobs(self, count: usize) -> Jobs<'n> {
        Jobs {
            share: self,
            count,
            done: false,
        }
    }

    /// The part of `0..count` that falls to this share, in one piece.
    pub fn of_range(self, count: usize) -> Range<usize> {
        count * self.index / self.of..count * (self.index + 1) / self.of
    }
}

/// Jobs that one share takes.
pub(in crate::graph) struct Jobs<'n> {
    share: Share<'n>,
    count: usize,
    done: bool,
}

impl Iterator for Jobs<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.done {
            return None;
        }
        // Nothing else is published by this number: results are by the barrier behind the node.
        let job = self.share.next.fetch_add(1, Ordering::Relaxed);
        if job < self.count {
            return Some(job);
        }
        self.done = true;
        // Every share is refused once; the last one makes the next run start anew.
        if job == self.count + self.share.of - 1 {
            self.share.next.store(0, Ordering::Relaxed);
        }
        None
    }
}

impl Drop for Jobs<'_> {
    /// An operator that fails leaves jobs undone; the numbers of the next run do not suffer.
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn every_job_is_taken_once_in_every_run() {
        let next = AtomicUsize::new(0);
        for (threads, count) in [(1, 5), (3, 100), (4, 2), (2, 0), (8, 1000)] {
            let taken = Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                for index in 0..threads {
                    let (next, taken) = (&next, &taken);
                    let share = Share {
                        index,
                        of: threads,
                        next,
                    };
                    scope.spawn(move || {
                        for job in share.of_jobs(count) {
                            taken.lock().unwrap().push(job);
                        }
                    });
                }
            });
            let mut taken = taken.into_inner().unwrap();
            taken.sort_unstable();
            assert!(
                taken.into_iter().eq(0..count),
                "{threads} threads, {count} jobs"
            );
        }
    }

    #[test]
    fn a_share_that_stops_does_not_disturb_the_next_run() {
        let next = AtomicUsize::new(0);
        let share = |index| Share {
            index,
            of: 2,
            next: &next,
        };
        assert_eq!(share(0).of_jobs(10).next(), Some(0));
        assert_eq!(share(1).of_jobs(10).next(), None);
        assert_eq!(
            share(0).of_jobs(10).count() + share(1).of_jobs(10).count(),
            10
        );
    }
}
