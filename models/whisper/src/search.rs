//! From scores to text tokens: greedy, sampling and beam search over one pool of cached rows.
//!
//! Hypotheses share the rows of their common past; what each sees is the list of its rows. So a
//! beam changes its parent by changing a list, and no cache is ever copied.

use audiocpp::{
    graph::GraphError,
    sampling::TorchRandom,
    simd::{self, log_sum_exp},
};

use crate::{
    gates::average_logprob,
    machine::{FIRST_ROW, Lane, Machine, first_rows},
    rules::Rules,
};

/// How a window is searched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Strategy {
    /// 0 takes the most probable token; above, tokens are drawn.
    pub temperature: f32,
    /// Beams at temperature 0; 1 is greedy.
    pub beams: usize,
    /// Hypotheses drawn side by side above temperature 0; the best is kept.
    pub best_of: usize,
    /// Tokens after which a window ends in any case.
    pub max_tokens: usize,
}

/// One hypothesis.
#[derive(Debug, Clone, Default)]
pub struct Hypothesis {
    /// Written tokens, without the end token.
    pub tokens: Vec<u32>,
    /// Natural log probability of each, after the rules.
    pub logprobs: Vec<f32>,
    /// Sum over the tokens and the end token.
    pub sum: f32,
    /// Whether the end token was written.
    pub ended: bool,
    /// Rows of the pool that hold its past, prompt included.
    rows: Vec<usize>,
}

impl Hypothesis {
    /// Mean log probability, the end token counted.
    fn mean(&self) -> f32 {
        average_logprob(self.sum, self.tokens.len())
    }
}

/// A searched window.
#[derive(Debug, Clone)]
pub struct Found {
    /// The best hypothesis.
    pub best: Hypothesis,
    /// Probability of `<|nospeech|>` where the text starts.
    pub no_speech: f32,
}

/// What a search is given.
pub struct Task<'a> {
    /// Earlier text, then the start sequence.
    pub prompt: &'a [u32],
    /// Position of `<|startoftranscript|>` in the prompt.
    pub sot: usize,
    /// The end token.
    pub eot: u32,
    /// The no-speech token.
    pub no_speech: u32,
    /// Which tokens may come next.
    pub rules: &'a Rules,
    /// How to search.
    pub strategy: Strategy,
}

/// Searches the window that `machine` has encoded. `stop` is asked before every step.
pub fn search(
    machine: &mut Machine,
    task: &Task,
    random: &mut TorchRandom,
    stop: &dyn Fn() -> bool,
) -> Result<Found, GraphError> {
    let lanes = if task.strategy.temperature > 0.0 {
        task.strategy.best_of.max(1)
    } else {
        task.strategy.beams.max(1)
    };
    // The decoder has no position beyond its context, whatever a loop would like to write.
    let room = machine
        .net()
        .config
        .text_ctx
        .saturating_sub(task.prompt.len());
    let max_tokens = task.strategy.max_tokens.min(room);
    machine.reserve(task.prompt.len() + lanes * (max_tokens + 1))?;
    let first = Hypothesis {
        rows: first_rows(task.prompt.len()),
        ..Hypothesis::default()
    };
    let (scores, no_speech) = read_prompt(machine, task, &first.rows)?;
    let mut state = Search {
        task,
        lanes,
        live: vec![first],
        ended: Vec::new(),
        random,
    };
    state.advance(vec![scores]);
    while !state.live.is_empty() && state.live[0].tokens.len() < max_tokens {
        if stop() {
            return Err(GraphError::Cancelled);
        }
        let scores = state.score(machine)?;
        state.advance(scores);
    }
    Ok(Found {
        best: state.best(),
        no_speech,
    })
}

/// Scores after the prompt, and the no-speech probability at its start.
fn read_prompt(
    machine: &mut Machine,
    task: &Task,
    rows: &[usize],
) -> Result<(Vec<f32>, f32), GraphError> {
    let lanes = Lane::text(task.prompt, rows);
    let last = task.prompt.len().saturating_sub(1);
    let mut scores = machine.score(&lanes, &[task.sot, last])?;
    let vocab = scores.len() / 2;
    let after = scores.split_off(vocab);
    let no_speech = (scores[task.no_speech as usize] - log_sum_exp(&scores)).exp();
    Ok((after, no_speech))
}

struct Search<'a> {
    task: &'a Task<'a>,
    lanes: usize,
    live: Vec<Hypothesis>,
    ended: Vec<Hypothesis>,
    random: &'a mut TorchRandom,
}

impl Search<'_> {
    /// Gives each live hypothesis a row for its newest token and scores what may follow.
    fn score(&mut self, machine: &mut Machine) -> Result<Vec<Vec<f32>>, GraphError> {
        let mut taken: Vec<bool> = Vec::new();
        for row in self.live.iter().flat_map(|h| &h.rows) {
            if taken.len() <= *row {
                taken.resize(row + 1, false);
            }
            taken[*row] = true;
        }
        let mut free = (FIRST_ROW..).filter(|row| !taken.get(*row).copied().unwrap_or(false));
        let new: Vec<usize> = free.by_ref().take(self.live.len()).collect();
        let lanes: Vec<Lane> = self
            .live
            .iter()
            .zip(&new)
            .map(|(h, &row)| Lane {
                token: h.tokens.last().copied().unwrap_or(self.task.eot),
                position: h.rows.len(),
                row,
                past: &h.rows,
            })
            .collect();
        let wanted: Vec<usize> = (0..lanes.len()).collect();
        let scores = machine.score(&lanes, &wanted)?;
        for (h, row) in self.live.iter_mut().zip(new) {
            h.rows.push(row);
        }
        if self.live.len() == 1 {
            return Ok(vec![scores]);
        }
        let vocab = scores.len() / self.live.len();
        Ok(scores.chunks_exact(vocab).map(<[f32]>::to_vec).collect())
    }

    /// Extends the live hypotheses by one token each.
    fn advance(&mut self, mut scores: Vec<Vec<f32>>) {
        for (h, scores) in self.live.iter().zip(&mut scores) {
            self.task.rules.apply(scores, &h.tokens);
        }
        if self.task.strategy.temperature > 0.0 {
            self.draw(scores);
        } else if self.lanes == 1 {
            let choice = best_tokens(&scores[0], 1).first().copied();
            self.follow_one(choice);
        } else {
            self.widen(&scores);
        }
    }

    fn follow_one(&mut self, choice: Option<(u32, f32)>) {
        let Some(mut h) = self.live.pop() else { return };
        self.extend(&mut h, choice);
        if h.ended {
            self.ended.push(h)
        } else {
            self.live.push(h)
        }
    }

    /// Without a permitted token the text ends.
    fn extend(&self, h: &mut Hypothesis, choice: Option<(u32, f32)>) {
        match choice {
            Some((token, logprob)) if token != self.task.eot => {
                h.tokens.push(token);
                h.logprobs.push(logprob);
                h.sum += logprob;
            }
            Some((_, logprob)) => {
                h.sum += logprob;
                h.ended = true;
            }
            None => h.ended = true,
        }
    }

    /// One drawn token for each of the side-by-side hypotheses.
    fn draw(&mut self, scores: Vec<Vec<f32>>) {
        let mut live = std::mem::take(&mut self.live);
        let mut scores = scores;
        if live.len() == 1 && live[0].tokens.is_empty() {
            live = vec![live[0].clone(); self.lanes];
            scores = vec![scores[0].clone(); self.lanes];
        }
        for (mut h, scores) in live.into_iter().zip(scores) {
            let choice = draw_token(&scores, self.task.strategy.temperature, self.random);
            self.extend(&mut h, choice);
            if h.ended {
                self.ended.push(h)
            } else {
                self.live.push(h)
            }
        }
    }

    /// Beam search: of all continuations of all beams, the most probable ones.
    fn widen(&mut self, scores: &[Vec<f32>]) {
        let mut all: Vec<(usize, u32, f32)> = Vec::new();
        for (i, scores) in scores.iter().enumerate() {
            let found = best_tokens(scores, self.lanes + 1);
            all.extend(
                found
                    .into_iter()
                    .map(|(token, logprob)| (i, token, logprob)),
            );
        }
        let sum = |(i, _, logprob): &(usize, u32, f32)| self.live[*i].sum + logprob;
        all.sort_by(|a, b| sum(b).total_cmp(&sum(a)));
        let mut live = Vec::with_capacity(self.lanes);
        let mut ended = Vec::new();
        for (i, token, logprob) in all {
            let mut h = self.live[i].clone();
            self.extend(&mut h, Some((token, logprob)));
            if h.ended {
                ended.push(h)
            } else {
                live.push(h)
            }
            if live.len() == self.lanes {
                break;
            }
        }
        self.live = live;
        self.ended.extend(ended);
        if self.ended.len() >= self.lanes {
            self.live.clear();
        }
    }

    /// The most probable hypothesis by its mean; unfinished ones count only if none ended.
    fn best(self) -> Hypothesis {
        let pool = if self.ended.is_empty() {
            self.live
        } else {
            self.ended
        };
        pool.into_iter()
            .max_by(|a, b| a.mean().total_cmp(&b.mean()))
            .unwrap_or_default()
    }
}

/// The `count` most probable permitted tokens with their log probabilities, best first.
fn best_tokens(scores: &[f32], count: usize) -> Vec<(u32, f32)> {
    let total = log_sum_exp(scores);
    if total == f32::NEG_INFINITY {
        return Vec::new();
    }
    let mut best: Vec<(u32, f32)> = Vec::with_capacity(count + 1);
    for (token, &score) in scores.iter().enumerate() {
        let worst = best.last().map_or(f32::NEG_INFINITY, |b| b.1);
        if best.len() < count || score > worst {
            if score == f32::NEG_INFINITY {
                continue;
            }
            let at = best.partition_point(|b| b.1 >= score);
            best.insert(at, (token as u32, score));
            best.truncate(count);
        }
    }
    best.iter_mut().for_each(|b| b.1 -= total);
    best
}

/// A token drawn from softmax(scores / temperature), with its log probability at temperature 1.
fn draw_token(scores: &[f32], temperature: f32, random: &mut TorchRandom) -> Option<(u32, f32)> {
    let total = log_sum_exp(scores);
    let max = simd::max(scores);
    if total == f32::NEG_INFINITY {
        return None;
    }
    let weight = |score: f32| f64::from((score - max) / temperature).exp();
    let sum: f64 = scores.iter().map(|&s| weight(s)).sum();
    let mut left = random.uniform_f64() * sum;
    let mut last = None;
    for (token, &score) in scores.iter().enumerate() {
        if score == f32::NEG_INFINITY {
            continue;
        }
        last = Some((token as u32, score - total));
        left -= weight(score);
        if left < 0.0 {
            break;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_tokens_are_sorted_and_normalised() {
        let scores = [0.0, 2.0, f32::NEG_INFINITY, 1.0];
        let best = best_tokens(&scores, 2);
        assert_eq!(best.iter().map(|b| b.0).collect::<Vec<_>>(), [1, 3]);
        let total = (1.0f32 + 2f32.exp() + 1f32.exp()).ln();
        assert!((best[0].1 - (2.0 - total)).abs() < 1e-6);
        assert!(best_tokens(&[f32::NEG_INFINITY; 3], 2).is_empty());
        assert_eq!(best_tokens(&scores, 9).len(), 3);
    }

    #[test]
    fn drawing_follows_the_probabilities() {
        let mut random = TorchRandom::new(1);
        let scores = [0.0, 3f32.ln(), f32::NEG_INFINITY];
        let ones = (0..2000)
            .filter(|_| draw_token(&scores, 1.0, &mut random).unwrap().0 == 1)
            .count();
        assert!(
            (1400..1600).contains(&ones),
            "{ones} of 2000, expected about 1500"
        );
        let cold = (0..200).all(|_| draw_token(&scores, 0.05, &mut random).unwrap().0 == 1);
        assert!(cold, "at a low temperature the best token always wins");
    }
}
