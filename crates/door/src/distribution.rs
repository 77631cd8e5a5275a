//! A time that is known: as one figure, or as a distribution.

use crate::millis::Millis;
use crate::random::RandomStream;

/// How long something takes.
#[derive(Clone, Debug, PartialEq)]
pub enum TimeDistribution {
    /// Always the same time; nothing is known of its spread.
    Fixed(Millis),
    /// Normal, cut off at zero by drawing again.
    Normal {
        /// The mean of the distribution.
        mean: Millis,
        /// Its standard deviation, at most a third of the mean: so the cut changes nothing.
        deviation: Millis,
    },
    /// All times between two ends alike.
    Uniform {
        /// The shortest time that occurs.
        low: Millis,
        /// The longest time that occurs.
        high: Millis,
    },
    /// Between two ends, most often at the mode.
    Triangular {
        /// The shortest time that occurs.
        low: Millis,
        /// The most frequent time, from `low` to `high`.
        mode: Millis,
        /// The longest time that occurs.
        high: Millis,
    },
    /// Exponential: as long to come, however long it has been.
    Exponential {
        /// The mean of the distribution.
        mean: Millis,
    },
    /// By quantiles, a straight line between each two.
    Quantiles(Vec<Quantile>),
}

/// This part of all times is at most this long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// From 0 to 1.
    pub part: f64,
    /// The time that this part does not exceed.
    pub time: Millis,
}

impl TimeDistribution {
    /// Whether it is one figure, of whose spread nothing is known.
    #[must_use]
    pub const fn is_fixed(&self) -> bool {
        matches!(self, Self::Fixed(_))
    }

    /// The mean of the distribution.
    #[must_use]
    pub fn mean(&self) -> Millis {
        match self {
            Self::Fixed(time)
            | Self::Normal { mean: time, .. }
            | Self::Exponential { mean: time } => *time,
            Self::Uniform { low, high } => (*low + *high) * 0.5,
            Self::Triangular { low, mode, high } => (*low + *mode + *high) * (1.0 / 3.0),
            Self::Quantiles(points) => {
                let ends = |first: &Quantile, last: &Quantile| {
                    first.time * first.part + last.time * (1.0 - last.part)
                };
                let between = points
                    .windows(2)
                    .map(|pair| {
                        (pair[0].time + pair[1].time) * (0.5 * (pair[1].part - pair[0].part))
                    })
                    .sum();
                points
                    .first()
                    .zip(points.last())
                    .map_or(Millis::ZERO, |(first, last)| ends(first, last) + between)
            }
        }
    }

    /// A time out of it.
    pub(crate) fn draw(&self, random: &mut RandomStream) -> Millis {
        match self {
            Self::Fixed(time) => *time,
            Self::Normal { mean, deviation } => loop {
                let time = *mean + *deviation * random.normal();
                if time.0 >= 0.0 {
                    break time;
                }
            },
            Self::Uniform { low, high } => *low + (*high - *low) * random.unit(),
            Self::Triangular { low, mode, high } => triangular(*low, *mode, *high, random.unit()),
            Self::Exponential { mean } => *mean * random.exponential(),
            Self::Quantiles(points) => quantile(points, random.unit()),
        }
    }

    /// What was measured one by one, as its quantiles: each value stands for an equal part.
    pub(crate) fn empirical(mut values: Vec<Millis>) -> Option<Self> {
        values.sort_by(|one, other| one.0.total_cmp(&other.0));
        let count = values.len() as f64;
        let point =
            |(at, time): (usize, Millis)| Quantile { part: (at as f64 + 0.5) / count, time };
        match values[..] {
            [] => None,
            [only] => Some(Self::Fixed(only)),
            _ => Some(Self::Quantiles(values.into_iter().enumerate().map(point).collect())),
        }
    }
}

/// The inverse of the distribution function.
fn triangular(low: Millis, mode: Millis, high: Millis, at: f64) -> Millis {
    let width = high.0 - low.0;
    if width <= 0.0 {
        return low;
    }
    let rising = mode.0 - low.0;
    if at < rising / width {
        Millis(low.0 + (at * width * rising).sqrt())
    } else {
        Millis(high.0 - ((1.0 - at) * width * (high.0 - mode.0)).sqrt())
    }
}

fn quantile(points: &[Quantile], at: f64) -> Millis {
    let next = points.partition_point(|point| point.part < at);
    match (next.checked_sub(1).and_then(|before| points.get(before)), points.get(next)) {
        (Some(before), Some(after)) => {
            let along = (at - before.part) / (after.part - before.part);
            before.time + (after.time - before.time) * along
        }
        // Nothing is known beyond the first and the last quantile.
        (Some(only), None) | (None, Some(only)) => only.time,
        (None, None) => Millis::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean by formula against the mean of many draws: within five standard errors.
    #[test]
    fn draws_have_the_mean_that_they_should_have() {
        let ms = Millis;
        let point = |part, time| Quantile { part, time: Millis(time) };
        let all = [
            TimeDistribution::Fixed(ms(7.0)),
            TimeDistribution::Normal { mean: ms(100.0), deviation: ms(20.0) },
            TimeDistribution::Uniform { low: ms(10.0), high: ms(50.0) },
            TimeDistribution::Triangular { low: ms(1.0), mode: ms(2.0), high: ms(9.0) },
            TimeDistribution::Triangular { low: ms(3.0), mode: ms(3.0), high: ms(3.0) },
            TimeDistribution::Quantiles(vec![point(0.1, 5.0), point(0.5, 10.0), point(0.9, 40.0)]),
        ];
        for distribution in all {
            let mut random = RandomStream::new(1, 0);
            let draws: Vec<f64> = (0..40_000).map(|_| distribution.draw(&mut random).0).collect();
            let count = draws.len() as f64;
            let mean = draws.iter().sum::<f64>() / count;
            let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / count;
            let error = 5.0 * (variance / count).sqrt() + 1e-9;
            let expected = distribution.mean().0;
            assert!((mean - expected).abs() <= error, "{distribution:?}: {mean}");
        }
    }

    #[test]
    fn measured_values_come_back() {
        let values = vec![Millis(3.0), Millis(1.0), Millis(2.0)];
        let distribution = TimeDistribution::empirical(values).unwrap();
        assert!((distribution.mean().0 - 2.0).abs() < 1e-12);
        let mut random = RandomStream::new(1, 0);
        assert!((0..1000).all(|_| (1.0..=3.0).contains(&distribution.draw(&mut random).0)));
        assert_eq!(TimeDistribution::empirical(Vec::new()), None);
    }

    #[test]
    fn a_triangular_time_is_drawn_by_its_inverse() {
        // A quarter of the area lies before the mode at 3; half of it before the root of 32 there.
        let at = |part: f64| triangular(Millis(1.0), Millis(3.0), Millis(9.0), part).0;
        for (part, time) in [(0.0, 1.0), (0.0625, 2.0), (0.25, 3.0), (0.8125, 6.0), (1.0, 9.0)] {
            assert!((at(part) - time).abs() < 1e-12, "{part}: {}", at(part));
        }
    }

    #[test]
    fn only_a_single_figure_is_fixed() {
        assert!(TimeDistribution::Fixed(Millis(1.0)).is_fixed());
        assert!(!TimeDistribution::Uniform { low: Millis(1.0), high: Millis(2.0) }.is_fixed());
    }

    #[test]
    fn a_normal_time_spreads_as_it_says_and_is_never_negative() {
        let mean = Millis(30.0);
        let deviation = Millis(10.0);
        let distribution = TimeDistribution::Normal { mean, deviation };
        let mut random = RandomStream::new(1, 0);
        let draws: Vec<f64> = (0..100_000).map(|_| distribution.draw(&mut random).0).collect();
        assert!(draws.iter().all(|draw| *draw >= 0.0));
        let below = |ms: f64| draws.iter().filter(|draw| **draw < ms).count() as f64 / 1e5;
        assert!((below(20.0) - 0.1587).abs() < 0.005 && (below(40.0) - 0.8413).abs() < 0.005);
    }

    /// Rising to the mode at an eighth of all, and falling from there.
    #[test]
    fn a_triangle_is_inverted_on_both_of_its_sides() {
        let at = |part| triangular(Millis(1.0), Millis(2.0), Millis(9.0), part).0;
        for (part, time) in [(0.0, 1.0), (0.03125, 1.5), (0.125, 2.0), (0.5, 3.7085), (1.0, 9.0)] {
            assert!((at(part) - time).abs() < 1e-4, "{part}: {}", at(part));
        }
        assert_eq!(triangular(Millis(3.0), Millis(3.0), Millis(3.0), 0.5), Millis(3.0));
    }

    #[test]
    fn between_quantiles_there_are_straight_lines_and_beyond_them_nothing() {
        let points = [(0.1, 5.0), (0.5, 10.0), (0.9, 40.0)]
            .map(|(part, time)| Quantile { part, time: Millis(time) });
        for (part, time) in
            [(0.05, 5.0), (0.1, 5.0), (0.3, 7.5), (0.5, 10.0), (0.7, 25.0), (0.95, 40.0)]
        {
            let found = quantile(&points, part).0;
            assert!((found - time).abs() < 1e-9, "{part}: {found}");
        }
        // A tenth each for the ends, and the lines' middles for four tenths each.
        let mean = TimeDistribution::Quantiles(points.to_vec()).mean().0;
        assert!((mean - (0.1 * 5.0 + 0.4 * 7.5 + 0.4 * 25.0 + 0.1 * 40.0)).abs() < 1e-9, "{mean}");
        assert_eq!(TimeDistribution::Quantiles(Vec::new()).mean(), Millis::ZERO);
    }

    #[test]
    fn each_measured_value_stands_for_an_equal_part() {
        let found = TimeDistribution::empirical(vec![Millis(4.0), Millis(1.0)]).unwrap();
        let point = |part, time| Quantile { part, time: Millis(time) };
        assert_eq!(found, TimeDistribution::Quantiles(vec![point(0.25, 1.0), point(0.75, 4.0)]));
        let only = TimeDistribution::empirical(vec![Millis(4.0)]);
        assert_eq!(only, Some(TimeDistribution::Fixed(Millis(4.0))));
    }
}
