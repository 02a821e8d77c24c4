//! Seeded random choices: times of arrival, durations of heavy-tailed work, and the order of requests.

use crate::cases::mix::Work;

/// Number of values that represent a heavy-tailed distribution.
pub const STRATA: usize = 512;

/// Arrival times of a Poisson process: independent exponential gaps.
#[derive(Debug)]
pub struct Poisson {
    random: fastrand::Rng,
    per_second: f64,
}

impl Poisson {
    /// Creates a process with this mean number of arrivals per second.
    pub fn new(per_second: f64, seed: u64) -> Self {
        Self { random: fastrand::Rng::with_seed(seed), per_second }
    }

    /// Returns the seconds until the next arrival.
    pub fn gap(&mut self) -> f64 {
        // The logarithm's argument is above 0, because `f64` returns at least 0 and less than 1.
        -(1.0 - self.random.f64()).ln() / self.per_second
    }
}

/// Returns the times of heavy-tailed work in milliseconds, ascending: the middle of each of [`STRATA`] equally likely
/// parts, so that the distribution is exact and not another source of noise. Only its last 1/1024 is cut off.
pub fn times_of(work: &Work) -> Option<Vec<f64>> {
    let quantile: Box<dyn Fn(f64) -> f64> = match *work {
        Work::LogNormal { median_ms, sigma } => Box::new(move |p| median_ms * (sigma * normal_quantile(p)).exp()),
        Work::Pareto { least_ms, alpha } => Box::new(move |p| least_ms * (1.0 - p).powf(-1.0 / alpha)),
        _ => return None,
    };
    Some((0..STRATA).map(|stratum| quantile((stratum as f64 + 0.5) / STRATA as f64)).collect())
}

/// The quantile of the standard normal distribution, by bisection: slow, exact enough, and called rarely.
fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-10.0, 10.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if normal_distribution(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// The standard normal distribution function by its Taylor series around 0 (Marsaglia, 2004).
fn normal_distribution(x: f64) -> f64 {
    if x < -8.0 {
        return 0.0;
    }
    if x > 8.0 {
        return 1.0;
    }
    let (mut sum, mut term, mut previous, mut i) = (x, x, 0.0, 1.0);
    while sum != previous {
        previous = sum;
        i += 2.0;
        term *= x * x / i;
        sum += term;
    }
    0.5 + sum * (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt()
}

/// Returns a long sequence of choices among entries with these weights; a caller that needs more repeats it.
pub fn sequence(weights: &[f64], length: usize, seed: u64) -> Vec<u32> {
    let mut random = fastrand::Rng::with_seed(seed);
    let total: f64 = weights.iter().sum();
    let choose = |mut at: f64| {
        let chosen = weights.iter().position(|weight| {
            at -= weight;
            at < 0.0
        });
        u32::try_from(chosen.unwrap_or(weights.len() - 1)).unwrap_or(0)
    };
    (0..length).map(|_| choose(random.f64() * total)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(seed: u64, count: usize) -> Vec<f64> {
        let mut poisson = Poisson::new(200.0, seed);
        (0..count).map(|_| poisson.gap()).collect()
    }

    #[test]
    fn arrivals_are_those_of_their_seed() {
        assert_eq!(gaps(7, 100), gaps(7, 100));
        assert_ne!(gaps(7, 100), gaps(8, 100));
    }

    #[test]
    fn gaps_between_arrivals_are_exponential() {
        let gaps = gaps(1, 100_000);
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        assert!((mean * 200.0 - 1.0).abs() < 0.02, "{mean}");
        // P(gap > t) = exp(-rate t), at several t.
        for t in [0.001, 0.005, 0.010, 0.020] {
            let beyond = gaps.iter().filter(|gap| **gap > t).count() as f64 / gaps.len() as f64;
            assert!((beyond - (-200.0 * t).exp()).abs() < 0.006, "{t}: {beyond}");
        }
    }

    #[test]
    fn arrivals_in_equal_times_scatter_as_poisson_says() {
        // The variance of the counts over their mean is 1; a constant rate would give 0, bursts more than 1.
        let mut counts = vec![0.0f64; 2000];
        let mut now = 0.0;
        for gap in gaps(3, 150_000) {
            now += gap;
            if let Some(count) = counts.get_mut((now / 0.25) as usize) {
                *count += 1.0;
            }
        }
        let (mean, deviation) = crate::stats::mean_and_deviation(&counts);
        assert!((mean - 50.0).abs() < 1.0, "{mean}");
        assert!((deviation * deviation / mean - 1.0).abs() < 0.12, "{}", deviation * deviation / mean);
    }

    #[test]
    fn normal_quantiles_agree_with_tables() {
        for (p, z) in [(0.5, 0.0), (0.841_344_746, 1.0), (0.975, 1.959_963_985), (0.999, 3.090_232_306)] {
            assert!((normal_quantile(p) - z).abs() < 1e-6, "{p}");
            assert!((normal_quantile(1.0 - p) + z).abs() < 1e-6, "{p}");
        }
    }

    #[test]
    fn heavy_tails_have_their_quantiles() {
        let lognormal = times_of(&Work::LogNormal { median_ms: 1.0, sigma: 1.5 }).unwrap();
        let at = |times: &[f64], p: f64| crate::stats::nearest_rank(times, p);
        assert!((at(&lognormal, 50.0) - 1.0).abs() < 0.01);
        assert!((at(&lognormal, 97.725) / (1.5f64 * 2.0).exp() - 1.0).abs() < 0.05);
        let pareto = times_of(&Work::Pareto { least_ms: 0.5, alpha: 1.2 }).unwrap();
        assert!(pareto[0] >= 0.5 && pareto[0] < 0.501);
        // The median is 2^(1/alpha) times the minimum.
        assert!((at(&pareto, 50.0) / (0.5 * 2f64.powf(1.0 / 1.2)) - 1.0).abs() < 0.01);
        assert!((at(&pareto, 99.0) / (0.5 * 100f64.powf(1.0 / 1.2)) - 1.0).abs() < 0.1);
        assert!(lognormal.is_sorted() && pareto.is_sorted());
        assert_eq!(times_of(&Work::Hello), None);
    }

    #[test]
    fn choices_follow_their_weights_and_seed() {
        let weights = [90.0, 8.0, 2.0, 0.0];
        let chosen = sequence(&weights, 100_000, 5);
        for (index, weight) in weights.iter().enumerate() {
            let share = chosen.iter().filter(|choice| **choice as usize == index).count() as f64 / 1000.0;
            assert!((share - weight).abs() < 0.5, "{index}: {share}");
        }
        assert_eq!(chosen, sequence(&weights, 100_000, 5));
        assert_ne!(chosen, sequence(&weights, 100_000, 6));
    }
}
