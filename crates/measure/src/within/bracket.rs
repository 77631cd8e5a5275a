//! Rates on either side of the bound, and the place between them where the limit probably is.

use super::{BRACKET, STRAIGHT};
use crate::exceedance::RateLevel;

/// A rate and on which side of the bound it lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub(super) rate: f64,
    /// The logarithm of the share beyond the bound; `None`: the backlog grows.
    pub(super) log: Option<f64>,
    pub(super) beyond: bool,
}

/// The level on either side of the bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bracket {
    pub(super) low: Side,
    pub(super) high: Side,
    /// A level outside of it agreed with it.
    pub(super) confirmed: bool,
}

impl Bracket {
    pub(super) fn ratio(&self) -> f64 {
        self.high.rate / self.low.rate
    }

    /// With a level between the two in the place of the one on its side; one outside of it may
    /// confirm it.
    pub(super) fn narrowed(self, side: Side) -> Self {
        if (self.low.rate..self.high.rate).contains(&side.rate) {
            return if side.beyond {
                Self { high: side, ..self }
            } else {
                Self { low: side, ..self }
            };
        }
        let agrees = side.beyond == (side.rate >= self.high.rate);
        Self { confirmed: self.confirmed || agrees, ..self }
    }

    /// Where the limit probably is. A short level may have been on the wrong side by chance: the line
    /// over all levels may lead out of the bracket, until a level there says that it was right.
    pub(super) fn place(&self, line: Option<Line>, wanted: f64) -> f64 {
        match line.map(|line| line.crossing) {
            Some(rate) if !self.confirmed || (self.low.rate..=self.high.rate).contains(&rate) => {
                self.nearly(rate)
            }
            _ => self.crossing(wanted),
        }
    }

    /// This rate, or the end that is nearer, of a range somewhat wider than the bracket.
    pub(super) fn nearly(&self, rate: f64) -> f64 {
        rate.clamp(self.low.rate / BRACKET, self.high.rate * BRACKET)
    }

    /// Where the line through both sides reaches this logarithm, kept inside the bracket.
    pub(super) fn crossing(&self, wanted: f64) -> f64 {
        let middle = (self.low.rate * self.high.rate).sqrt();
        let (Some(low), Some(high)) = (self.low.log, self.high.log) else { return middle };
        if high <= low {
            return middle;
        }
        let part = ((wanted - low) / (high - low)).clamp(0.1, 0.9);
        self.low.rate * self.ratio().powf(part)
    }
}

/// The line through the logarithms of share and rate, over the levels near the wanted share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// By how much the logarithm of the share rises with that of the rate.
    pub(super) slope: f64,
    /// The rate at which it reaches the wanted share.
    pub(super) crossing: f64,
}

impl Line {
    /// By least squares, each level by how many of its arrivals lie beyond the bound: their number
    /// alone makes a share precise. `None`: there are no two rates near, or it does not rise.
    pub(super) fn near(levels: &[RateLevel], share: f64) -> Option<Self> {
        /// So far from the wanted share, as a logarithm, the line is still straight enough.
        const NEAR: f64 = 2.5;
        let near = levels.iter().filter(|level| !level.backlog_grows());
        let points = near.filter_map(|level| {
            let beyond = level.share_beyond();
            let log = beyond.ln();
            let near = (log - share.ln()).abs() <= NEAR && beyond < STRAIGHT;
            near.then_some((level.rate.0.ln(), log, beyond * level.arrivals() as f64))
        });
        let points: Vec<(f64, f64, f64)> = points.collect();
        let total: f64 = points.iter().map(|(_, _, weight)| weight).sum();
        let mean_of = |value: fn(&(f64, f64, f64)) -> f64| {
            points.iter().map(|point| value(point) * point.2).sum::<f64>() / total
        };
        let middle = mean_of(|point| point.0);
        let height = mean_of(|point| point.1);
        let spread: f64 = points.iter().map(|(x, _, w)| w * (x - middle).powi(2)).sum();
        let products: f64 = points.iter().map(|(x, y, w)| w * (x - middle) * (y - height)).sum();
        let slope = products / spread;
        let rises = spread > 0.0 && slope > 0.0;
        rises.then(|| Self { slope, crossing: (middle + (share.ln() - height) / slope).exp() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::levels::{growing, steady};
    use super::*;

    fn side(rate: f64, log: Option<f64>, beyond: bool) -> Side {
        Side { rate, log, beyond }
    }

    fn bracket_of(low: Side, high: Side) -> Bracket {
        Bracket { low, high, confirmed: false }
    }

    #[test]
    fn a_bracket_is_crossed_on_the_logarithms_of_rate_and_share() {
        let bracket = |low, high| bracket_of(side(100.0, low, false), side(400.0, high, true));
        let known = bracket(Some(-6.0), Some(-4.0));
        assert!((known.ratio() - 4.0).abs() < 1e-12);
        let is = |wanted: f64, rate: f64| {
            let found = known.crossing(wanted);
            assert!((found / rate - 1.0).abs() < 1e-9, "{wanted}: {found}");
        };
        is(-5.0, 200.0);
        is(-5.5, 100.0 * 2f64.sqrt());
        // Never nearer to a side than a tenth of the way.
        is(-7.0, 100.0 * 4f64.powf(0.1));
        is(-1.0, 100.0 * 4f64.powf(0.9));
        for unknown in [
            bracket(None, Some(-4.0)),
            bracket(Some(-6.0), None),
            bracket(Some(-4.0), Some(-4.0)),
            bracket(Some(-4.0), Some(-6.0)),
        ] {
            assert!((unknown.crossing(-5.9) - 200.0).abs() < 1e-9, "{unknown:?}");
        }
    }

    #[test]
    fn a_narrowed_bracket_keeps_its_other_side() {
        let bracket = bracket_of(side(100.0, Some(-6.0), false), side(400.0, Some(-4.0), true));
        let beyond = bracket.narrowed(side(200.0, Some(-4.2), true));
        assert_eq!((beyond.low.rate, beyond.high.rate), (100.0, 200.0));
        let within = bracket.narrowed(side(200.0, Some(-5.0), false));
        assert_eq!((within.low.rate, within.high.rate), (200.0, 400.0));
        assert!(!within.confirmed && !beyond.confirmed);
        // A level outside changes no side, and may agree with them.
        for (rate, is_beyond, agrees) in
            [(90.0, false, true), (90.0, true, false), (400.0, true, true), (400.0, false, false)]
        {
            let outside = bracket.narrowed(side(rate, None, is_beyond));
            assert_eq!((outside.low.rate, outside.high.rate), (100.0, 400.0));
            assert_eq!(outside.confirmed, agrees, "{rate} {is_beyond}");
        }
        let still = Bracket { confirmed: true, ..bracket }.narrowed(side(90.0, None, true));
        assert!(still.confirmed);
        // A rate outside may be up to 1.3 times away.
        let near = [50.0, 80.0, 300.0, 510.0, 600.0].map(|rate| bracket.nearly(rate));
        assert_eq!(near, [100.0 / 1.3, 80.0, 300.0, 510.0, 400.0 * 1.3]);
    }

    #[test]
    fn a_line_leads_out_of_a_bracket_until_a_level_there_agrees_with_it() {
        let bracket = bracket_of(side(100.0, Some(-6.0), false), side(400.0, Some(-4.0), true));
        let confirmed = Bracket { confirmed: true, ..bracket };
        let line = |crossing| Some(Line { slope: 1.0, crossing });
        let is =
            |found: f64, rate: f64| assert!((found / rate - 1.0).abs() < 1e-9, "{found} {rate}");
        is(bracket.place(line(90.0), -5.0), 90.0);
        is(bracket.place(line(50.0), -5.0), 100.0 / 1.3);
        is(bracket.place(None, -5.0), 200.0);
        for outside in [90.0, 50.0, 401.0] {
            is(confirmed.place(line(outside), -5.0), 200.0);
        }
        for inside in [100.0, 300.0, 400.0] {
            is(confirmed.place(line(inside), -5.0), inside);
        }
    }

    #[test]
    fn a_line_weighs_each_level_by_its_arrivals_beyond() {
        // Twenty and forty arrivals at 100/s lie beyond, eighty at 200/s.
        let levels = [
            steady(100.0, 2_000, 0.01),
            steady(100.0, 2_000, 0.02),
            steady(200.0, 2_000, 0.04),
            // Too far from the wanted share by more than e to the 2.5, or of a growing backlog.
            steady(300.0, 2_000, 0.4),
            steady(30.0, 2_000, 0.0),
            growing(90.0, 2_000, 0.04),
        ];
        // Through the weighted mean at 100/s, which is 0.01 times 2 to the 2/3, and 0.04 at 200/s.
        let slope = 2.0 - 2.0 / 3.0;
        let up = (3f64.ln() - 2.0 / 3.0 * 2f64.ln()) / slope;
        let line = Line::near(&levels, 0.03).unwrap();
        assert!((line.slope - slope).abs() < 1e-9, "{line:?}");
        assert!((line.crossing / (100.0 * up.exp()) - 1.0).abs() < 1e-9, "{line:?}");
        assert!(Line::near(&levels[..2], 0.03).is_none(), "one rate");
        assert!(Line::near(&[], 0.03).is_none());
        let falling = [steady(100.0, 2_000, 0.04), steady(200.0, 2_000, 0.01)];
        assert!(Line::near(&falling, 0.03).is_none());
        // Half of all is no point of a straight line, however near the wanted share.
        let flattened = [(100.0, 0.05), (200.0, 0.2), (250.0, 0.5)];
        let flattened = flattened.map(|(rate, share)| steady(rate, 2_000, share));
        let line = Line::near(&flattened, 0.1).unwrap();
        assert!((line.slope - 2.0).abs() < 1e-9, "{line:?}");
        assert!((line.crossing / (100.0 * 2f64.sqrt()) - 1.0).abs() < 1e-9, "{line:?}");
    }
}
