//! A histogram in few bins of equal ratio, to be drawn.

use tapstone_measure::units::Nanos;
use tapstone_record::{EncodedHistogram, Fraction, HistogramError};

/// Latencies from one bound up to the next, and how many there were.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bin {
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
    pub(crate) count: u64,
}

/// Bins narrower than this ratio would show the histogram's own buckets, which differ by 0.1 %,
/// and bounds that are alike when printed with three digits.
const FINEST: f64 = 0.005;

/// Bins from the shortest to the longest latency, at most `wanted`; none when it is empty.
///
/// The last bin takes all that lies beyond the quantile `body`: a few outliers would otherwise
/// squeeze everything else into one bin.
///
/// # Errors
/// When the record's histogram cannot be decoded.
pub(crate) fn log_bins(
    histogram: &EncodedHistogram,
    wanted: usize,
    body: Fraction,
) -> Result<Vec<Bin>, HistogramError> {
    let histogram = histogram.decode()?;
    if histogram.is_empty() {
        return Ok(Vec::new());
    }
    let longest = histogram.max();
    let body = histogram.value_at_quantile(body.0).min(longest);
    let beyond = usize::from(body < longest && wanted > 1);
    let body = if beyond == 1 { body } else { longest };
    let mut bins = equal_ratios(histogram.min(), body, wanted.max(1) - beyond);
    let edge = Nanos(body.saturating_add(1));
    bins.extend((beyond == 1).then_some(Bin { from: edge, to: Nanos(longest), count: 0 }));
    for step in histogram.iter_recorded() {
        let value = Nanos(histogram.lowest_equivalent(step.value_iterated_to()));
        let bin = bins.partition_point(|bin| bin.from <= value).saturating_sub(1);
        bins[bin].count = bins[bin].count.saturating_add(step.count_at_value());
    }
    Ok(bins)
}

/// Empty bins of equal ratio from one value to another, both included.
fn equal_ratios(shortest: u64, longest: u64, wanted: usize) -> Vec<Bin> {
    let low = shortest.max(1) as f64;
    let high = (longest as f64 + 1.0).max(low + 1.0);
    // Below 2,048 ns a bucket is 1 ns wide, which is a large ratio: two of them at least.
    let finest = FINEST.max(2.0 / low);
    let count = ((high / low).ln() / finest).clamp(1.0, wanted as f64) as usize;
    let width = (high / low).ln() / count as f64;
    let bound = |bin: usize| Nanos((low * (width * bin as f64).exp()).round() as u64);
    (0..count).map(|bin| Bin { from: bound(bin), to: bound(bin + 1), count: 0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    fn encoded(values: &[u64]) -> EncodedHistogram {
        let mut histogram = Histogram::new_with_bounds(1, 1 << 42, 3).unwrap();
        values.iter().for_each(|value| histogram.record(*value).unwrap());
        EncodedHistogram::encode(&histogram).unwrap()
    }

    proptest! {
        #[test]
        fn every_latency_is_in_one_bin(
            values in prop::collection::vec(0u64..1 << 42, 1..200),
            wanted in 0usize..40, body in 0.0..=1.0,
        ) {
            let bins = log_bins(&encoded(&values), wanted, Fraction(body)).unwrap();
            prop_assert!((1..=wanted.max(1)).contains(&bins.len()));
            prop_assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), values.len() as u64);
            prop_assert!(bins.windows(2).all(|pair| pair[0].to == pair[1].from));
        }
    }

    #[test]
    fn bins_have_equal_ratios() {
        let bins = log_bins(&encoded(&[1_000, 11_000, 1_000_000]), 3, Fraction(1.0)).unwrap();
        let counts: Vec<u64> = bins.iter().map(|bin| bin.count).collect();
        assert_eq!(counts, [1, 1, 1]);
        assert!((9_990..10_010).contains(&bins[0].to.0), "{bins:?}");
    }

    #[test]
    fn an_outlier_has_the_last_bin_to_itself() {
        let mut values: Vec<u64> = (1_000..1_999).collect();
        values.push(1_000_000);
        let bins = log_bins(&encoded(&values), 11, Fraction(0.999)).unwrap();
        assert_eq!(bins.len(), 11);
        assert_eq!(bins[10].count, 1);
        assert!(bins[..10].iter().all(|bin| bin.count > 50), "{bins:?}");
    }

    #[test]
    fn a_narrow_histogram_gets_few_bins_and_an_empty_one_none() {
        let bins = |values: &[u64]| log_bins(&encoded(values), 14, Fraction(1.0)).unwrap();
        assert_eq!(bins(&[1_000_000, 1_001_000]).len(), 1);
        assert_eq!(bins(&[]), []);
    }
}
