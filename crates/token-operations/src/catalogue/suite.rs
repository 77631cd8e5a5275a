//! A suite: the cases of a run, from a TOML file.
//!
//! ```toml
//! name = "signing"
//! [[case]]
//! operation = "rsa2048.sign.*"   # as for `Catalogue::select`
//! threads = [1, 4]               # one case per number; default 1
//! seconds = 5                    # or `count = 1000`; default: until the figure is precise
//! [[case]]
//! operation = "aes256-gcm.encrypt"
//! sizes = [16, 1024, 65536]      # message lengths in bytes
//! ```

use std::collections::HashSet;
use std::num::NonZeroU32;

use serde::Deserialize;
use tapstone_measure::units::Nanos;
use tapstone_source::{Mistake, Source};
use toml::Spanned;

use super::variant::Variant;
use super::{Catalogue, CatalogueError};

/// For what TOML's reader does not like.
const HINT: &str =
    "a case has `operation`, and may have `sizes`, `threads`, and `seconds` or `count`";

/// The cases of a run, each with its operations found in the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite {
    /// What the suite calls itself.
    pub name: String,
    /// What it is for, in one line; empty if it does not say.
    pub description: String,
    /// What to measure, in order.
    pub cases: Vec<SuiteCase>,
}

/// One `[[case]]`: some operations under the same conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct SuiteCase {
    /// Each selected operation at each of the sizes; never empty.
    pub variants: Vec<Variant>,
    /// The numbers of threads to measure them with; never empty.
    pub threads: Vec<NonZeroU32>,
    /// The length of the window, if it is fixed.
    pub window: Option<Nanos>,
    /// How many operations to measure, if that is fixed. Excludes `window`.
    pub count: Option<u64>,
}

impl Suite {
    /// Reads a suite over the built-in catalogue; `file` is for error texts.
    ///
    /// # Errors
    /// Not TOML, an unknown field or operation, or a value that cannot be: with line and field.
    pub fn parse(file: &str, text: &str) -> Result<Self, Mistake> {
        Self::parse_with(Catalogue::builtin(), file, text)
    }

    pub(super) fn parse_with(
        catalogue: &Catalogue,
        file: &str,
        text: &str,
    ) -> Result<Self, Mistake> {
        let source = Source { file, text };
        let raw: RawSuite = toml::from_str(text).map_err(|error| source.syntax(&error, HINT))?;
        let mut cases = Vec::new();
        let mut seen = HashSet::new();
        for case in raw.case {
            let span = case.operation.span();
            let case = case.resolve(catalogue, &source)?;
            if let Some(twice) = case.first_repeated(&mut seen) {
                let problem = format!(
                    "{twice} a second time\nhint: two cases of one name cannot be told apart in a \
                     record; remove one"
                );
                return Err(source.error(span, problem));
            }
            cases.push(case);
        }
        Ok(Self { name: raw.name, description: raw.description, cases })
    }
}

impl SuiteCase {
    /// The first of its measurements that was `seen` before, in words. All are added to `seen`.
    fn first_repeated(&self, seen: &mut HashSet<(String, usize, NonZeroU32)>) -> Option<String> {
        let mut cases = self
            .variants
            .iter()
            .flat_map(|variant| self.threads.iter().map(move |threads| (variant, *threads)));
        let (variant, threads) = cases.find(|(variant, threads)| {
            !seen.insert((variant.name.clone(), variant.message_bytes, *threads))
        })?;
        let Variant { name, message_bytes, .. } = variant;
        Some(format!("{name} (message of {message_bytes} bytes, threads = {threads})"))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSuite {
    name: String,
    #[serde(default)]
    description: String,
    /// Earlier suites call a case `[[row]]`.
    #[serde(alias = "row")]
    case: Vec<RawCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCase {
    operation: Spanned<String>,
    sizes: Option<Spanned<Vec<Spanned<usize>>>>,
    threads: Option<Spanned<OneOrMore>>,
    seconds: Option<Spanned<f64>>,
    count: Option<Spanned<u64>>,
}

/// `threads = 4` and `threads = [1, 4]` both read well, so both are accepted.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected 1 thread or more, or a list of such numbers")]
enum OneOrMore {
    One(NonZeroU32),
    More(Vec<NonZeroU32>),
}

impl RawCase {
    fn resolve(self, catalogue: &Catalogue, source: &Source<'_>) -> Result<SuiteCase, Mistake> {
        if let (Some(_), Some(count)) = (&self.seconds, &self.count) {
            let problem = "a case ends by `seconds` or by `count`\nhint: remove one of them";
            return Err(source.error(count.span(), problem));
        }
        Ok(SuiteCase {
            variants: variants(catalogue, source, &self.operation, self.sizes.as_ref())?,
            threads: threads(source, self.threads)?,
            window: self.seconds.map(|seconds| window(source, &seconds)).transpose()?,
            count: self.count.map(|count| positive(source, &count)).transpose()?,
        })
    }
}

fn variants(
    catalogue: &Catalogue,
    source: &Source<'_>,
    operation: &Spanned<String>,
    sizes: Option<&Spanned<Vec<Spanned<usize>>>>,
) -> Result<Vec<Variant>, Mistake> {
    let at = |span| move |error: CatalogueError| source.error(span, error.to_string());
    let chosen = catalogue.select(operation.get_ref()).map_err(at(operation.span()))?;
    let Some(sizes) = sizes else { return Ok(chosen) };
    if sizes.get_ref().is_empty() {
        return Err(source.error(sizes.span(), "no size\nhint: leave it out, or `[1024]`"));
    }
    let mut sized = Vec::new();
    for variant in chosen {
        for bytes in sizes.get_ref() {
            let variant = variant.clone().with_message_bytes(*bytes.get_ref());
            sized.push(variant.map_err(at(bytes.span()))?);
        }
    }
    Ok(sized)
}

fn threads(
    source: &Source<'_>,
    threads: Option<Spanned<OneOrMore>>,
) -> Result<Vec<NonZeroU32>, Mistake> {
    let Some(threads) = threads else { return Ok(vec![NonZeroU32::MIN]) };
    let span = threads.span();
    match threads.into_inner() {
        OneOrMore::One(number) => Ok(vec![number]),
        OneOrMore::More(numbers) if numbers.is_empty() => {
            Err(source.error(span, "no number of threads\nhint: `threads = [1, 4]`"))
        }
        OneOrMore::More(numbers) => Ok(numbers),
    }
}

fn window(source: &Source<'_>, seconds: &Spanned<f64>) -> Result<Nanos, Mistake> {
    /// A day: longer windows are typing errors.
    const LONGEST_S: f64 = 86_400.0;
    let value = *seconds.get_ref();
    if value > 0.0 && value <= LONGEST_S {
        return Ok(Nanos((value * 1e9).round() as u64));
    }
    let problem = format!("a window of {value} s is impossible\nhint: choose 0.1 to {LONGEST_S}");
    Err(source.error(seconds.span(), problem))
}

fn positive(source: &Source<'_>, count: &Spanned<u64>) -> Result<u64, Mistake> {
    match *count.get_ref() {
        0 => Err(source.error(count.span(), "nothing to do\nhint: choose 1 or more")),
        count => Ok(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(text: &str) -> String {
        Suite::parse("my.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn a_case_gives_each_operation_at_each_size() {
        let text = "name = 'x'\n[[case]]\noperation = 'aes128-gcm.encrypt'\nsizes = [16, 1024]\n\
                    threads = [1, 4]\nseconds = 0.5\n[[case]]\noperation = 'rsa2048.sign.*'\n\
                    threads = 2\ncount = 7\n";
        let suite = Suite::parse("my.toml", text).unwrap();
        let sizes: Vec<_> = suite.cases[0].variants.iter().map(|v| v.message_bytes).collect();
        assert_eq!(sizes, [16, 1024]);
        assert_eq!(suite.cases[0].window, Some(Nanos::from_millis(500)));
        assert_eq!(suite.cases[0].threads.len(), 2);
        assert_eq!(suite.cases[1].variants.len(), 4);
        assert_eq!((suite.cases[1].window, suite.cases[1].count), (None, Some(7)));
    }

    #[test]
    fn cases_may_be_called_rows_as_in_earlier_suites() {
        let text = "name = 'x'\n[[case]]\noperation = 'rsa2048.sign'\ncount = 7\n";
        let today = Suite::parse("my.toml", text).unwrap();
        assert_eq!(Suite::parse("my.toml", &text.replace("case", "row")).unwrap(), today);
    }

    #[test]
    fn a_case_that_stands_there_twice_is_an_error() {
        let sign = "[[case]]\noperation = 'rsa2048.sign'\n";
        let twice = complaint(&format!("name = 'x'\n{sign}{sign}seconds = 1\n"));
        assert!(twice.starts_with("my.toml, line 5"), "{twice}");
        assert!(
            twice.contains("rsa2048.sign (message of ") && twice.contains("a second time"),
            "{twice}"
        );
        assert!(twice.contains("hint:"), "{twice}");
        let pattern = complaint(&format!("name = 'x'\n{sign}[[case]]\noperation = 'rsa2048.*'\n"));
        assert!(pattern.contains("a second time"), "{pattern}");
        let threads = complaint(&format!("name = 'x'\n{sign}threads = [2, 2]\n"));
        assert!(threads.contains("threads = 2) a second time"), "{threads}");
        let sizes = "name = 'x'\n[[case]]\noperation = 'sha256.digest'\nsizes = [16, 16]\n";
        assert!(complaint(sizes).contains("a second time"));
        // Other conditions are other cases.
        let other = format!("name = 'x'\n{sign}{sign}threads = [2, 4]\n");
        assert_eq!(Suite::parse("my.toml", &other).unwrap().cases.len(), 2);
    }

    #[test]
    fn errors_name_file_line_and_field() {
        let case = "name = 'x'\n[[case]]\noperation = 'rsa2048.sign'\n";
        insta::assert_snapshot!(
            [
                complaint("name = 'x'\n[[case]]\noperation = 'rsa2048.sing'\n"),
                complaint(&format!("{case}sizes = [16]\n")),
                complaint(&format!("{case}sizes = []\n")),
                complaint("name = 'x'\n[[case]]\noperation = 'random'\nsizes = [\n16,\n0,\n]\n"),
                complaint(&format!("{case}threads = 0\n")),
                complaint(&format!("{case}threads = []\n")),
                complaint(&format!("{case}seconds = -1\n")),
                complaint(&format!("{case}count = 0\n")),
                complaint(&format!("{case}seconds = 1\ncount = 1\n")),
                complaint(&format!("{case}thread = 1\n")),
                complaint("name = 'x'\n[[case]]\nthreads = 1\n"),
                complaint("name = 'x'\n[[case\n"),
            ]
            .join("\n\n")
        );
    }
}
