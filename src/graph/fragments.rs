//! How many values of a graph are alive at once.
//!
//! ggml's planner keeps at most 256 separate pieces of free memory and aborts at one more. Two
//! pieces are separate only if a live value lies between them, so a graph whose live values are
//! fewer than that at any time can never get there.

use std::{collections::HashMap, ptr::NonNull};

use ggml_sys as sys;

use super::guard;

type Raw = NonNull<sys::ggml_tensor>;

/// Values that may be alive at once in a graph that ggml plans; a few below its limit, for the
/// piece at the end and the moment between a value's end and its successor's beginning.
pub(super) const MAX_LIVE_VALUES: usize = 250;

/// Most values that the planner holds at once while it goes through `nodes`. With `copies`,
/// stored tensors count too, since the CPU gets copies of those that it reads.
pub(super) fn most_alive(nodes: &[Raw], copies: bool) -> usize {
    // For each value: the first node with it in memory, the last that reads it.
    let mut lives: HashMap<Raw, (usize, usize)> = HashMap::new();
    for (at, &node) in nodes.iter().enumerate() {
        for value in guard::sources(node).chain([node]) {
            let root = guard::root(value);
            // SAFETY: a live tensor.
            let (op, flags, stored) = unsafe {
                let t = root.as_ref();
                (t.op, t.flags, !t.buffer.is_null())
            };
            if stored && !copies {
                continue;
            }
            let begin = if op == sys::GGML_OP_NONE { 0 } else { at };
            let life = lives.entry(root).or_insert((begin, usize::MAX));
            let kept = flags & sys::GGML_TENSOR_FLAG_OUTPUT as i32 != 0;
            // A value that nobody reads is never freed; one that is read, after its last reader.
            if value != node && !kept {
                life.1 = at;
            }
        }
    }
    let mut change = vec![0isize; nodes.len() + 2];
    for (begin, end) in lives.into_values() {
        change[begin] += 1;
        change[end.saturating_add(1).min(nodes.len() + 1)] -= 1;
    }
    let mut alive = 0;
    let sums = change.iter().map(|step| {
        alive += step;
        alive
    });
    sums.max().unwrap_or(0).unsigned_abs()
}
