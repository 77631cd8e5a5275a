//! Calls that were counted where they happened, without being handed over one by one.

use tapstone_events::Family;
use tapstone_measure::bucket::bucket_of;
use tapstone_measure::series::Series;
use tapstone_measure::slice::Slice;
use tapstone_measure::units::Nanos;

use crate::layout::{self, BUCKETS, TimeBucket};

/// Calls of one thread to one function with one result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedCall {
    /// The process, by id.
    pub process: u32,
    /// The thread, by id.
    pub thread: u32,
    /// The file name of the module.
    pub module: String,
    /// The function's name in the standard, such as `C_Sign`.
    pub function: &'static str,
    /// Which interface it belongs to.
    pub family: Family,
    /// CK_RV, or the code of PC/SC or of a driver; `None` where returns are not watched.
    pub result: Option<u64>,
    /// How many calls ended so.
    pub count: u64,
    /// How long all of them took.
    pub time: Nanos,
}

/// An hour is to take no more memory than some minutes. Half as many are left when neighbours merge,
/// as many as there are batches in an interval.
const MOST_SLICES: usize = 96;

/// How long the calls of a function took, over the time that it was watched.
#[derive(Clone, Debug)]
pub struct FunctionTimes {
    /// The function's name in the standard, such as `C_Sign`.
    pub function: &'static str,
    /// The file name of the module.
    pub module: String,
    /// What came between one look and the next.
    pub series: Series,
    seen: Vec<TimeBucket>,
    since: Nanos,
}

impl FunctionTimes {
    pub(crate) fn new(function: &'static str, module: String) -> Self {
        let series = Series::new(Nanos::from_secs(1));
        Self { function, module, series, seen: Vec::new(), since: Nanos::ZERO }
    }

    /// What the kernel has counted until now, so long since the beginning.
    pub(crate) fn add(&mut self, buckets: &[TimeBucket], since: Nanos, cost: Nanos) {
        if buckets.iter().all(|bucket| bucket.count == 0) {
            self.since = since;
            return;
        }
        self.seen.resize(BUCKETS, TimeBucket::default());
        let length = self.series.length();
        let mut slice =
            Slice { start: Nanos(self.since.0 / length.0 * length.0), length, ..Slice::empty() };
        let mut places: Vec<(u32, u64)> = Vec::new();
        for (number, (bucket, seen)) in buckets.iter().zip(&mut self.seen).enumerate() {
            let count = bucket.count - seen.count;
            let new = TimeBucket { count, total_ns: bucket.total_ns - seen.total_ns };
            let Some(mean) = layout::mean_of(number, new) else { continue };
            *seen = *bucket;
            let time = Nanos(mean.0.saturating_sub(cost.0));
            slice.completed += count;
            slice.latency_sum += u128::from(time.0) * u128::from(count);
            slice.busy += Nanos(time.0 * count);
            slice.min = slice.min.min(time);
            slice.max = slice.max.max(time);
            let place = bucket_of(time) as u32;
            match places.last_mut() {
                Some((last, calls)) if *last == place => *calls += count,
                _ => places.push((place, count)),
            }
        }
        // Kept for as long as anybody watches.
        places.shrink_to_fit();
        slice.buckets = places;
        self.since = since;
        if slice.completed > 0 {
            self.series.add(&slice);
        }
        if self.series.slices().len() > MOST_SLICES {
            self.series = self.series.coarsened();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places of all slices' histograms, and the room for them.
    fn room(times: &FunctionTimes) -> (usize, usize) {
        let slices = times.series.slices().iter();
        slices.fold((0, 0), |(used, kept), slice| {
            (used + slice.buckets.len(), kept + slice.buckets.capacity())
        })
    }

    #[test]
    fn an_hour_of_scattered_times_takes_hardly_more_room_than_six_minutes() {
        let mut times = FunctionTimes::new("C_Sign", "module.so".to_owned());
        let mut buckets = vec![TimeBucket::default(); BUCKETS];
        let mut random = 1_u64;
        let mut rooms = Vec::new();
        for second in 1..=3600 {
            for _ in 0..1000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // Half of them in the lowest of 32 places, and so on.
                let bucket = &mut buckets[300 + (random >> 32).leading_zeros() as usize % 64];
                bucket.count += 1;
                bucket.total_ns += 2000;
            }
            times.add(&buckets, Nanos::from_secs(second), Nanos(3));
            let (used, kept) = room(&times);
            assert_eq!(used, kept, "nothing is kept that nobody needs");
            rooms.push(kept);
        }
        let most = |rooms: &[usize]| rooms.iter().copied().max().unwrap_or(0);
        let (early, late) = (most(&rooms[..360]), most(&rooms));
        assert!(late < early * 2, "{early} places, then {late}");
    }

    #[test]
    fn a_day_takes_no_more_room_than_some_minutes() {
        let mut times = FunctionTimes::new("C_Sign", "module.so".to_owned());
        let mut buckets = vec![TimeBucket::default(); BUCKETS];
        let seconds = 86_400;
        for second in 1..=seconds {
            buckets[100].count += 2000;
            buckets[100].total_ns += 2000 * 145;
            times.add(&buckets, Nanos::from_secs(second), Nanos(3));
        }
        assert!(times.series.slices().len() <= MOST_SLICES);
        let total = times.series.total();
        assert_eq!(total.completed, 2000 * seconds);
        assert_eq!(total.min, Nanos(142));
        assert_eq!(total.quantile(0.5), Some(Nanos(142)));
    }
}
