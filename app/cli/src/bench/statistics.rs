//! Percentiles and means.

/// The value at rank `p * (n - 1)` of the sorted values, interpolated between its neighbours
/// (numpy's default); `None` for no values.
pub fn percentile(values: &[f64], p: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = p * (sorted.len().checked_sub(1)? as f64);
    let below = rank.floor();
    let (low, high) = (sorted[below as usize], sorted[rank.ceil() as usize]);
    Some(low + (high - low) * (rank - below))
}

/// The arithmetic mean; `None` for no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_numpy() {
        assert_eq!(percentile(&[], 0.5), None);
        assert_eq!(percentile(&[7.0], 0.9), Some(7.0));
        assert_eq!(percentile(&[3.0, 1.0], 0.5), Some(2.0));
        assert_eq!(percentile(&[3.0, 1.0], 0.9), Some(2.8));
        // numpy.percentile(range(1, 21), [0, 50, 90, 100])
        let twenty: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        let at = |p| percentile(&twenty, p).unwrap();
        assert_eq!((at(0.0), at(0.5), at(1.0)), (1.0, 10.5, 20.0));
        assert!((at(0.9) - 18.1).abs() < 1e-12, "{}", at(0.9));
        // numpy.percentile([10, 20, 40, 80], 90) = 40 + 0.7 * 40
        let four = percentile(&[80.0, 10.0, 40.0, 20.0], 0.9).unwrap();
        assert!((four - 68.0).abs() < 1e-12, "{four}");
    }

    #[test]
    fn means() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[1.0, 2.0, 6.0]), Some(3.0));
    }
}
