//! Statistics on a handful of runs: median, spread, percentiles, and whether two sets of runs differ.
//!
//! A lab with three to ten rounds has too few values for anything that assumes a normal distribution, so everything
//! here works on ranks.

use serde::{Deserialize, Serialize};

/// Summary of a few values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of values.
    pub count: usize,
    /// Smallest.
    pub min: f64,
    /// Middle.
    pub median: f64,
    /// Largest.
    pub max: f64,
}

impl Summary {
    /// Summarizes the values; `None` if there are none or one of them is not a number.
    pub fn of(values: &[f64]) -> Option<Self> {
        let sorted = sorted(values)?;
        Some(Self {
            count: sorted.len(),
            min: sorted[0],
            median: quantile_sorted(&sorted, 0.5),
            max: sorted[sorted.len() - 1],
        })
    }

    /// Returns the distance between the extremes as a share of the median.
    pub fn spread(&self) -> f64 {
        if self.median.abs() > f64::EPSILON { (self.max - self.min) / self.median } else { 0.0 }
    }
}

fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

/// Returns the quantile of sorted values, interpolated between neighbours (type 7 of Hyndman and Fan, 1996).
pub fn quantile_sorted(sorted: &[f64], quantile: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let position = quantile.clamp(0.0, 1.0) * last as f64;
    let below = position.floor() as usize;
    let above = position.ceil() as usize;
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

/// Returns the percentile of sorted values by nearest rank: a latency that really occurred, not one between two.
pub fn nearest_rank(sorted: &[f64], percentile: f64) -> f64 {
    if sorted.is_empty() {
        return f64::NAN;
    }
    // 99.9 % of 1000 is 999.0000000000001 in floating point and still the 999th value.
    let rank = (percentile / 100.0 * sorted.len() as f64 - 1e-9).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// Returns the mean and the standard deviation of the population.
pub fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    if values.is_empty() {
        return (f64::NAN, f64::NAN);
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
    (mean, variance.sqrt())
}

/// Comparison of two sets of runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Median of the first over the median of the second.
    pub ratio: f64,
    /// Two-sided probability of ranks at least this far apart if both sets came from the same source.
    pub chance: f64,
}

impl Difference {
    /// Compares two sets of values with the exact Mann-Whitney U test.
    pub fn between(first: &[f64], second: &[f64]) -> Option<Self> {
        let ratio = Summary::of(first)?.median / Summary::of(second)?.median;
        Some(Self { ratio, chance: mann_whitney(first, second) })
    }

    /// Returns `true` if chance is an unlikely explanation (below 5 %). Sets of equal size need four values each.
    pub fn is_clear(&self) -> bool {
        self.chance < 0.05
    }
}

/// Exact two-sided Mann-Whitney U test. Ties count one half, so with many ties the result is approximate.
fn mann_whitney(first: &[f64], second: &[f64]) -> f64 {
    let (m, n) = (first.len(), second.len());
    let mut u = 0.0f64;
    for a in first {
        for b in second {
            u += match a.total_cmp(b) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Less => 0.0,
            };
        }
    }
    let extreme = u.min((m * n) as f64 - u);
    let ways = arrangements(m, n);
    let total: f64 = ways.iter().sum();
    let tail: f64 = ways.iter().take(extreme.floor() as usize + 1).sum();
    (2.0 * tail / total).min(1.0)
}

/// Returns how many orders of `m` and `n` values give each possible U (the recurrence of Mann and Whitney, 1947).
fn arrangements(m: usize, n: usize) -> Vec<f64> {
    let size = m * n + 1;
    let mut table = vec![vec![vec![0.0; size]; n + 1]; m + 1];
    for i in 0..=m {
        for j in 0..=n {
            if i == 0 || j == 0 {
                table[i][j][0] = 1.0;
                continue;
            }
            for u in 0..=(i * j) {
                let greatest_is_first = if u >= j { table[i - 1][j][u - j] } else { 0.0 };
                table[i][j][u] = greatest_is_first + table[i][j - 1][u];
            }
        }
    }
    std::mem::take(&mut table[m][n])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_of_known_values() {
        let summary = Summary::of(&[5.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!(summary, Summary { count: 4, min: 1.0, median: 2.5, max: 5.0 });
        assert!((summary.spread() - 1.6).abs() < 1e-12);
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn quantiles_agree_with_r_type_7() {
        // R: quantile(c(1,2,4,7,11), c(.25,.5,.9), type = 7) gives 2, 4, 9.4
        let values = [1.0, 2.0, 4.0, 7.0, 11.0];
        assert!((quantile_sorted(&values, 0.25) - 2.0).abs() < 1e-12);
        assert!((quantile_sorted(&values, 0.5) - 4.0).abs() < 1e-12);
        assert!((quantile_sorted(&values, 0.9) - 9.4).abs() < 1e-12);
    }

    #[test]
    fn nearest_rank_returns_values_that_occurred() {
        let values: Vec<f64> = (1..=1000).map(f64::from).collect();
        assert_eq!(nearest_rank(&values, 50.0), 500.0);
        assert_eq!(nearest_rank(&values, 99.0), 990.0);
        assert_eq!(nearest_rank(&values, 99.9), 999.0);
        assert_eq!(nearest_rank(&values, 100.0), 1000.0);
        assert_eq!(nearest_rank(&values, 0.0), 1.0);
        assert_eq!(nearest_rank(&[7.0], 99.0), 7.0);
    }

    #[test]
    fn mean_and_deviation_of_known_values() {
        let (mean, deviation) = mean_and_deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((mean, deviation), (5.0, 2.0));
    }

    #[test]
    fn mann_whitney_agrees_with_published_tables() {
        // Fully separated sets: p = 2 / C(m+n, n). C(8,4) = 70, C(6,3) = 20, C(10,5) = 252.
        let apart = |n: usize| {
            let low: Vec<f64> = (0..n).map(|i| i as f64).collect();
            let high: Vec<f64> = (0..n).map(|i| 100.0 + i as f64).collect();
            mann_whitney(&low, &high)
        };
        assert!((apart(3) - 0.1).abs() < 1e-12);
        assert!((apart(4) - 2.0 / 70.0).abs() < 1e-12);
        assert!((apart(5) - 2.0 / 252.0).abs() < 1e-12);
        // Mann and Whitney's table for sizes 4 and 5: P(U <= 8) = .365; here U = 8.
        let p = mann_whitney(&[1.0, 4.0, 5.0, 8.0], &[2.0, 3.0, 6.0, 7.0, 9.0]);
        assert!((p - 2.0 * 0.365).abs() < 0.001, "{p}");
    }

    #[test]
    fn difference_needs_four_rounds() {
        let three = Difference::between(&[1.0, 2.0, 3.0], &[7.0, 8.0, 9.0]).unwrap();
        assert!(!three.is_clear());
        let four = Difference::between(&[1.0, 2.0, 3.0, 3.5], &[7.0, 8.0, 9.0, 9.5]).unwrap();
        assert!(four.is_clear());
        assert!(four.ratio < 1.0);
    }
}
