//! The rate against concurrency, with the law that was fitted and the claim.

use tapstone_record::{Claim, Knee, Level, ScalabilityLaw};

use crate::chart::{
    Across, Axis, AxisUnit, Chart, ChartSize, Mark, Plot, Point, Series, Shape, Tone, Xy, Zoom,
};
use crate::{figures, words};

/// Points of the law's line.
const STEPS: u32 = 60;

pub(in super::super) fn knee(knee: &Knee, claims: &[Claim]) -> Option<Chart> {
    if knee.levels.len() < 2 {
        return None;
    }
    let measured: Vec<Point> = knee.levels.iter().map(point).collect();
    let most = measured.iter().map(|point| point.x).fold(1.0, f64::max);
    let mut series = vec![Series {
        name: "measured, with interval".into(),
        tone: Tone::First,
        shape: Shape::DotsAndLine,
        points: measured,
    }];
    series.extend(knee.law.as_ref().map(|law| Series {
        name: "fitted scalability law".into(),
        tone: Tone::Second,
        shape: Shape::Dashed,
        points: line(law, most),
    }));
    let mut marks: Vec<Mark> = claims.iter().filter_map(|claim| rate(claim, knee)).collect();
    marks.extend(knee.concurrency.map(|at| Mark {
        at: words::workers(at) as f64,
        across: Across::X,
        text: "knee".into(),
    }));
    let says = knee.plateau.map_or_else(
        || "no plateau was reached".to_owned(),
        |plateau| format!("plateau {}", figures::with_interval(&plateau, figures::rate)),
    );
    Some(Chart {
        title: "How does the rate grow with concurrency?".into(),
        says,
        size: ChartSize::Whole,
        plot: Plot::Xy(Xy {
            x: Axis::log("workers: threads × processes × hosts (log)", AxisUnit::Count),
            y: Axis::linear("operations per second", AxisUnit::Rate),
            series,
            marks,
            zoom: Zoom::Never,
        }),
    })
}

fn point(level: &Level) -> Point {
    let workers = words::workers(level.concurrency()) as f64;
    match level.rate_with_interval() {
        Some(rate) => Point::estimated(workers, &rate),
        None => Point::new(workers, level.rate.estimate),
    }
}

/// Gunther's law: `λ n / (1 + σ (n - 1) + κ n (n - 1))`.
fn line(law: &ScalabilityLaw, most: f64) -> Vec<Point> {
    let point = |step: u32| {
        let n = most.powf(f64::from(step) / f64::from(STEPS));
        let divisor = 1.0 + law.sigma * (n - 1.0) + law.kappa * n * (n - 1.0);
        Point::new(n, law.lambda * n / divisor)
    };
    (0..=STEPS).map(point).collect()
}

/// The rate that a claim of this operation speaks of.
fn rate(claim: &Claim, knee: &Knee) -> Option<Mark> {
    if claim.operation != knee.operation {
        return None;
    }
    let number = claim.text.rsplit(['=', '≥', '≤']).next()?.trim().strip_suffix("/s")?;
    let at = number.replace([',', '_'], "").trim().parse().ok()?;
    Some(Mark { at, across: Across::Y, text: format!("claim: {}", claim.text) })
}
