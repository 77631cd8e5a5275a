//! A time in a scenario: a number, a published figure by its name, or a distribution.
//!
//! A published figure is written as `{ reference = "piv-door:rsa2048.processing_ms.card" }`: the
//! reference, and the path of the figure in its file. The unit is in the file's own names (`…_ms`,
//! `…_seconds`). `less` subtracts another one, `over` divides by it.

use tapstone_record::Provenance;
use tapstone_source::{Mistake, Source};
use toml::{Spanned, Table, Value};

use crate::distribution::{Quantile, TimeDistribution};
use crate::millis::Millis;

/// A time, and what is known of where it is from.
pub(super) struct ScenarioFigure {
    pub(super) time: TimeDistribution,
    /// Known for figures of a reference.
    pub(super) provenance: Option<Provenance>,
    pub(super) source: Option<String>,
}

/// The most that anything at a door takes: an hour. A longer one has its unit wrong.
const LONGEST_MS: f64 = 3.6e6;

/// What figures a scenario can hold.
pub(super) trait FigureSource {
    /// A time as a distribution, with its source where that is known.
    fn figure(&self, raw: &Spanned<Value>) -> Result<ScenarioFigure, Mistake>;

    /// A time that must be one figure.
    fn one_figure(&self, raw: &Spanned<Value>) -> Result<Millis, Mistake>;

    /// A ratio: a number, or one published figure over another.
    fn factor(&self, raw: &Spanned<Value>) -> Result<f64, Mistake>;
}

impl FigureSource for Source<'_> {
    fn figure(&self, raw: &Spanned<Value>) -> Result<ScenarioFigure, Mistake> {
        let here = |problem: String| self.error(raw.span(), problem);
        match raw.get_ref() {
            Value::Table(table) if table.contains_key("reference") => {
                let (value, provenance, source) = published(table).map_err(here)?;
                let time = checked(value).map_err(here)?;
                let time = TimeDistribution::Fixed(time);
                Ok(ScenarioFigure { time, provenance: Some(provenance), source: Some(source) })
            }
            Value::Table(table) => {
                let time = distribution(table).map_err(here)?;
                Ok(ScenarioFigure { time, provenance: None, source: None })
            }
            value => {
                let time = TimeDistribution::Fixed(millis(value).map_err(here)?);
                Ok(ScenarioFigure { time, provenance: None, source: None })
            }
        }
    }

    fn one_figure(&self, raw: &Spanned<Value>) -> Result<Millis, Mistake> {
        match self.figure(raw)?.time {
            TimeDistribution::Fixed(time) => Ok(time),
            _ => Err(self.error(raw.span(), "this is one figure, not a distribution\nhint: 1500")),
        }
    }

    fn factor(&self, raw: &Spanned<Value>) -> Result<f64, Mistake> {
        let here = |problem: String| self.error(raw.span(), problem);
        let factor = match raw.get_ref() {
            Value::Table(table) => published(table).map_err(here)?.0,
            value => number(value).map_err(here)?,
        };
        let fits = factor.is_finite() && (0.0..=100.0).contains(&factor);
        fits.then_some(factor)
            .ok_or_else(|| here("a factor is from 0 to 100\nhint: 0.5 is half of it".into()))
    }
}

/// The value of a published figure, with what is done to it.
fn published(table: &Table) -> Result<(f64, Provenance, String), String> {
    let known = ["reference", "less", "over"];
    if let Some(unknown) = table.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(format!("unknown field `{unknown}`\nhint: reference, less, over"));
    }
    let named = |key: &str| table.get(key).map(|name| look_up(name, key)).transpose();
    let Some((value, source)) = named("reference")? else {
        return Err("the reference is missing\nhint: reference = \"piv-door:…\"".into());
    };
    let less = named("less")?;
    let over = named("over")?;
    let derived = less.is_some() || over.is_some();
    let value = (value - less.map_or(0.0, |it| it.0)) / over.map_or(1.0, |it| it.0);
    let provenance = if derived { Provenance::Derived } else { Provenance::Published };
    Ok((value, provenance, source))
}

/// `piv-door:rsa2048.processing_ms.card`, in milliseconds.
fn look_up(name: &Value, key: &str) -> Result<(f64, String), String> {
    let hint = "hint: reference = \"piv-door:rsa2048.processing_ms.card\" names a reference and the \
                path of a figure in its file";
    let name = name.as_str().ok_or_else(|| format!("`{key}` is not a name\n{hint}"))?;
    let (file, path) =
        name.split_once(':').ok_or_else(|| format!("{name:?} has no colon\n{hint}"))?;
    let reference = tapstone_reference::load(file).map_err(|error| error.to_string())?;
    let time =
        reference.time(path).map_err(|error| format!("reference {file:?}: {error}\n{hint}"))?;
    Ok((time.milliseconds, reference.source))
}

fn number(value: &Value) -> Result<f64, String> {
    match value {
        Value::Integer(whole) => Ok(*whole as f64),
        Value::Float(number) => Ok(*number),
        _ => Err("not a number\nhint: a number of milliseconds, or { reference = \"…\" }".into()),
    }
}

fn millis(value: &Value) -> Result<Millis, String> {
    checked(number(value)?)
}

fn checked(ms: f64) -> Result<Millis, String> {
    match ms {
        ms if ms < 0.0 => Err(format!("{ms} ms is negative\nhint: a time is 0 or more")),
        ms if ms <= LONGEST_MS => Ok(Millis(ms)),
        ms => Err(format!("{ms} ms is no time at a door\nhint: times are in milliseconds")),
    }
}

/// `{ normal = { mean = 200, deviation = 20 } }` and the others.
fn distribution(table: &Table) -> Result<TimeDistribution, String> {
    let hint = "hint: { normal = { mean = 200, deviation = 20 } }, { uniform = { low = 1, high = \
                2 } }, { triangular = { low = 1, mode = 2, high = 4 } }, { \
                exponential = { mean = 200 } }, { quantiles = [[0.5, \
                100], [0.95, 180]] } or { reference = \"piv-door:…\" }";
    let mut entries = table.iter();
    let (Some((name, value)), None) = (entries.next(), entries.next()) else {
        return Err(format!("not one distribution\n{hint}"));
    };
    let fields = |names: &[&str]| -> Result<Vec<Millis>, String> {
        let fields = value.as_table().ok_or_else(|| format!("{name} has fields\n{hint}"))?;
        if let Some(unknown) = fields.keys().find(|field| !names.contains(&field.as_str())) {
            return Err(format!("{name} has no `{unknown}`\n{hint}"));
        }
        let field = |field: &&str| {
            let value = fields.get(*field).ok_or_else(|| format!("{name} needs `{field}`\n{hint}"));
            millis(value?)
        };
        names.iter().map(field).collect()
    };
    match name.as_str() {
        "normal" => match fields(&["mean", "deviation"])?[..] {
            [mean, deviation] if deviation.0 * 3.0 <= mean.0 => {
                Ok(TimeDistribution::Normal { mean, deviation })
            }
            _ => {
                Err("the deviation is more than a third of the mean: a normal distribution would \
                      have negative times\nhint: use triangular or quantiles"
                    .into())
            }
        },
        "uniform" => match fields(&["low", "high"])?[..] {
            [low, high] if low <= high => Ok(TimeDistribution::Uniform { low, high }),
            _ => Err(format!("low is above high\n{hint}")),
        },
        "triangular" => match fields(&["low", "mode", "high"])?[..] {
            [low, mode, high] if low <= mode && mode <= high => {
                Ok(TimeDistribution::Triangular { low, mode, high })
            }
            _ => Err(format!("low, mode and high are not in this order\n{hint}")),
        },
        "exponential" => match fields(&["mean"])?[..] {
            [mean] => Ok(TimeDistribution::Exponential { mean }),
            _ => Err(format!("exponential needs `mean`\n{hint}")),
        },
        "quantiles" => quantiles(value).map_err(|why| format!("{why}\n{hint}")),
        other => Err(format!("there is no distribution {other:?}\n{hint}")),
    }
}

fn quantiles(value: &Value) -> Result<TimeDistribution, String> {
    let pairs = value.as_array().filter(|pairs| pairs.len() >= 2);
    let pairs = pairs.ok_or("quantiles are at least two pairs of a part and a time")?;
    let mut points: Vec<Quantile> = Vec::new();
    for pair in pairs {
        let [part, time] = pair.as_array().map_or(&[][..], Vec::as_slice) else {
            return Err("a quantile is a pair of a part and a time".into());
        };
        let part = number(part)?;
        let time = millis(time)?;
        if !(0.0..=1.0).contains(&part) {
            return Err(format!("{part} is no part of all: it is from 0 to 1"));
        }
        if points.last().is_some_and(|last| last.part >= part || last.time > time) {
            return Err("quantiles rise, in both".into());
        }
        points.push(Quantile { part, time });
    }
    Ok(TimeDistribution::Quantiles(points))
}
