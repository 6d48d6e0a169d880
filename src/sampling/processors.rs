//! What is done to logits before a token is chosen, in the order of Hugging Face `generate`.

/// Settings of the processors, applied from top to bottom; the defaults change nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Processors {
    /// Logits of ids that came before are divided by this when positive, multiplied when
    /// negative; 1 is off.
    pub repetition_penalty: f32,
    /// Divides the logits; 0 means greedy choice.
    pub temperature: f32,
    /// Keeps this many of the best; 0 is off.
    pub top_k: usize,
    /// Keeps the fewest best whose probabilities reach this sum; 1 is off.
    pub top_p: f32,
    /// Keeps those at least this probable relative to the best; 0 is off.
    pub min_p: f32,
}

impl Default for Processors {
    fn default() -> Self {
        Processors {
            repetition_penalty: 1.0,
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
        }
    }
}

impl Processors {
    /// Always the most probable id.
    pub fn greedy() -> Self {
        Processors {
            temperature: 0.0,
            ..Self::default()
        }
    }

    /// Whether the best id is taken without drawing.
    pub fn is_greedy(&self) -> bool {
        self.temperature <= 0.0
    }

    /// Changes `logits` `[vocabulary]` in place; ids that may not be chosen become -inf. When
    /// greedy, only the repetition penalty applies.
    pub fn apply(&self, logits: &mut [f32], previous: &[u32]) {
        repetition_penalty(logits, previous, self.repetition_penalty);
        if self.is_greedy() {
            return;
        }
        temperature(logits, self.temperature);
        top_k(logits, self.top_k);
        top_p(logits, self.top_p);
        min_p(logits, self.min_p);
    }
}

/// Makes ids in `previous` less likely by the factor `penalty`, each once however often it came.
pub fn repetition_penalty(logits: &mut [f32], previous: &[u32], penalty: f32) {
    if penalty == 1.0 || penalty <= 0.0 {
        return;
    }
    let mut seen = previous.to_vec();
    seen.sort_unstable();
    seen.dedup();
    for id in seen {
        if let Some(logit) = logits.get_mut(id as usize) {
            *logit = match *logit < 0.0 {
                true => *logit * penalty,
                false => *logit / penalty,
            };
        }
    }
}

/// Divides all logits by `temperature`, which must be positive to have an effect.
pub fn temperature(logits: &mut [f32], temperature: f32) {
    if temperature > 0.0 && temperature != 1.0 {
        logits.iter_mut().for_each(|logit| *logit /= temperature);
    }
}

/// Keeps the `k` best logits, and those equal to the last of them; 0 keeps all.
pub fn top_k(logits: &mut [f32], k: usize) {
    if k == 0 || k >= logits.len() {
        return;
    }
    let mut sorted = logits.to_vec();
    let (_, least, _) = sorted.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
    let least = *least;
    keep(logits, |logit| logit >= least);
}

/// Keeps the fewest best ids whose probabilities sum to `p` or more, always at least one.
pub fn top_p(logits: &mut [f32], p: f32) {
    if p >= 1.0 || logits.is_empty() {
        return;
    }
    let probabilities = softmax(logits);
    let mut order: Vec<usize> = (0..logits.len()).collect();
    // Ties keep the later id, as torch's ascending sort does.
    order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]).then(b.cmp(a)));
    // The tail goes whose total is at most 1 - p, summed from its least probable end.
    let mut tail = 0.0;
    for id in order.into_iter().skip(1).rev() {
        tail += probabilities[id];
        if tail > 1.0 - p {
            break;
        }
        logits[id] = f32::NEG_INFINITY;
    }
}

/// Keeps ids whose probability is at least `p` times that of the best.
pub fn min_p(logits: &mut [f32], p: f32) {
    if p <= 0.0 {
        return;
    }
    let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let least = best + p.min(1.0).ln();
    keep(logits, |logit| logit >= least);
}

fn keep(logits: &mut [f32], wanted: impl Fn(f32) -> bool) {
    for logit in logits {
        if !wanted(*logit) {
            *logit = f32::NEG_INFINITY;
        }
    }
}

/// Index of the greatest logit, the first of equals; None when all are -inf or NaN.
pub fn argmax(logits: &[f32]) -> Option<u32> {
    let mut best = None;
    let mut greatest = f32::NEG_INFINITY;
    for (index, logit) in logits.iter().enumerate() {
        if *logit > greatest {
            greatest = *logit;
            best = Some(index as u32);
        }
    }
    best
}

/// Greatest logit, and the logarithm of the sum of `exp(logit - greatest)`.
fn log_sum(logits: &[f32]) -> (f32, f32) {
    let greatest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if greatest == f32::NEG_INFINITY {
        return (0.0, 0.0);
    }
    let sum: f64 = logits
        .iter()
        .map(|logit| f64::from((logit - greatest).exp()))
        .sum();
    (greatest, sum.ln() as f32)
}

/// Natural logarithms of the probabilities; where no logit is finite, the logits themselves.
pub fn log_softmax(logits: &[f32]) -> Vec<f32> {
    let (greatest, log_sum) = log_sum(logits);
    let log = |logit: &f32| logit - greatest - log_sum;
    logits.iter().map(log).collect()
}

/// Natural logarithm of the probability of one id; -inf for an id outside the vocabulary.
pub fn log_prob(logits: &[f32], id: u32) -> f32 {
    let (greatest, log_sum) = log_sum(logits);
    match logits.get(id as usize) {
        Some(logit) => logit - greatest - log_sum,
        None => f32::NEG_INFINITY,
    }
}

/// Probabilities; all 0 where no logit is finite.
pub fn softmax(logits: &[f32]) -> Vec<f32> {
    let mut probabilities = log_softmax(logits);
    probabilities.iter_mut().for_each(|log| *log = log.exp());
    probabilities
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUT: f32 = f32::NEG_INFINITY;

    #[test]
    fn softmax_of_large_and_forbidden_logits() {
        let probabilities = softmax(&[1000.0, 1001.0, OUT]);
        assert!((probabilities[1] - 0.731_058_6).abs() < 1e-6);
        assert_eq!(probabilities[2], 0.0);
        assert!((log_prob(&[0.0, 0.0], 1) + std::f32::consts::LN_2).abs() < 1e-6);
        assert_eq!(log_prob(&[0.0], 7), OUT);
        assert_eq!(softmax(&[OUT, OUT]), [0.0, 0.0]);
        assert!(softmax(&[]).is_empty());
        assert_eq!(argmax(&[1.0, 2.0, 2.0]), Some(1));
    }

    #[test]
    fn penalty_lowers_either_sign_once() {
        let mut logits = [2.0, -2.0, 1.0];
        repetition_penalty(&mut logits, &[0, 1, 0, 99], 2.0);
        assert_eq!(logits, [1.0, -4.0, 1.0]);
    }

    #[test]
    fn top_k_keeps_ties() {
        let mut logits = [1.0, 3.0, 2.0, 2.0];
        top_k(&mut logits, 2);
        assert_eq!(logits, [OUT, 3.0, 2.0, 2.0]);
        top_k(&mut logits, 0);
        assert_eq!(logits[2], 2.0);
    }

    #[test]
    fn top_p_keeps_the_fewest_that_reach_the_sum() {
        let start = [0.1f32, 0.4, 0.2, 0.3].map(f32::ln);
        let kept = |p| {
            let mut logits = start;
            top_p(&mut logits, p);
            logits.map(|logit| logit > OUT)
        };
        assert_eq!(kept(0.65), [false, true, false, true]);
        assert_eq!(kept(0.75), [false, true, true, true]);
        assert_eq!(kept(0.0), [false, true, false, false]);
        assert_eq!(kept(1.0), [true; 4]);
    }

    #[test]
    fn min_p_is_relative_to_the_best() {
        let mut logits = [0.5f32, 0.06, 0.04].map(f32::ln);
        min_p(&mut logits, 0.1);
        assert_eq!(logits.map(|logit| logit > OUT), [true, true, false]);
    }

    #[test]
    fn processors_run_in_order() {
        // Top-k comes after temperature and before top-p: with two left, top-p sees 0.73, 0.27.
        let mut logits = [2.0, 4.0, 0.0, 1.0];
        Processors {
            temperature: 2.0,
            top_k: 2,
            top_p: 0.7,
            ..Processors::default()
        }
        .apply(&mut logits, &[]);
        assert_eq!(logits, [OUT, 2.0, OUT, OUT]);
        let mut logits = [2.0, 4.0];
        Processors {
            top_k: 1,
            repetition_penalty: 4.0,
            ..Processors::greedy()
        }
        .apply(&mut logits, &[1]);
        assert_eq!(logits, [2.0, 1.0]);
    }
}
