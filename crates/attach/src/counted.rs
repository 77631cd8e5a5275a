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
/// How long the first ones are.
const SHORTEST_SLICE: Nanos = Nanos(1_000_000_000);

/// Calls of some time by bucket of the kernel, of which a few dozen are in use: so neighbours that
/// merge hardly take more room than each of them.
type TimeSlice = Vec<(u16, TimeBucket)>;

/// How long the calls of a function took, over the time that it was watched.
#[derive(Clone, Debug)]
pub struct FunctionTimes {
    /// The function's name in the standard, such as `C_Sign`.
    pub function: &'static str,
    /// The file name of the module.
    pub module: String,
    /// What watching adds to a call.
    cost: Nanos,
    /// How long each slice is.
    length: Nanos,
    slices: Vec<TimeSlice>,
    /// What the kernel had counted at the last look, ...
    seen: Vec<TimeBucket>,
    /// ... which was so long after the beginning.
    since: Nanos,
}

impl FunctionTimes {
    pub(crate) fn new(function: &'static str, module: String, cost: Nanos) -> Self {
        let (slices, seen) = (Vec::new(), Vec::new());
        Self { function, module, cost, length: SHORTEST_SLICE, slices, seen, since: Nanos::ZERO }
    }

    /// What the kernel has counted until now, so long since the beginning.
    pub(crate) fn add(&mut self, buckets: &[TimeBucket], since: Nanos) {
        let before = std::mem::replace(&mut self.since, since);
        if buckets.iter().all(|bucket| bucket.count == 0) {
            return;
        }
        self.seen.resize(BUCKETS, TimeBucket::default());
        let mut new = TimeSlice::new();
        for (number, (bucket, seen)) in buckets.iter().zip(&mut self.seen).enumerate() {
            if bucket.count > seen.count {
                let count = bucket.count - seen.count;
                let total_ns = bucket.total_ns - seen.total_ns;
                new.push((number as u16, TimeBucket { count, total_ns }));
                *seen = *bucket;
            }
        }
        if new.is_empty() {
            return;
        }
        let mut place = (before.0 / self.length.0) as usize;
        while place >= MOST_SLICES {
            self.coarsen();
            place /= 2;
        }
        if self.slices.len() <= place {
            self.slices.resize(place + 1, TimeSlice::new());
        }
        let slice = &mut self.slices[place];
        *slice = merged(slice, &new);
    }

    fn coarsen(&mut self) {
        self.length = Nanos(self.length.0 * 2);
        let merge = |pair: &[TimeSlice]| match pair {
            [one, other] => merged(one, other),
            _ => pair.concat(),
        };
        self.slices = self.slices.chunks(2).map(merge).collect();
    }

    /// What came between one look and the next, without what watching adds.
    #[must_use]
    pub fn series(&self) -> Series {
        let mut series = Series::new(self.length);
        for (calls, place) in self.slices.iter().zip(0_u64..).filter(|(calls, _)| !calls.is_empty())
        {
            let start = Nanos(place * self.length.0);
            let mut slice = Slice { start, length: self.length, ..Slice::empty() };
            for (number, bucket) in calls {
                if let Some(mean) = layout::mean_of(usize::from(*number), *bucket) {
                    put(&mut slice, Nanos(mean.0.saturating_sub(self.cost.0)), bucket.count);
                }
            }
            series.add(&slice);
        }
        series
    }
}

/// Calls that took so long, longer than those before.
fn put(slice: &mut Slice, time: Nanos, count: u64) {
    slice.completed += count;
    slice.latency_sum += u128::from(time.0) * u128::from(count);
    slice.busy += Nanos(time.0 * count);
    slice.min = slice.min.min(time);
    slice.max = slice.max.max(time);
    let place = bucket_of(time) as u32;
    match slice.buckets.last_mut() {
        Some((last, calls)) if *last == place => *calls += count,
        _ => slice.buckets.push((place, count)),
    }
}

/// Two sorted lists of counts as one, with no more room than it takes.
fn merged(one: &[(u16, TimeBucket)], other: &[(u16, TimeBucket)]) -> TimeSlice {
    let mut all = [one, other].concat();
    all.sort_by_key(|(number, _)| *number);
    all.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        if is_same {
            kept.1.count += next.1.count;
            kept.1.total_ns += next.1.total_ns;
        }
        is_same
    });
    all.shrink_to_fit();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places of all slices' histograms, and the room for them.
    fn room(times: &FunctionTimes) -> (usize, usize) {
        let slices = times.slices.iter();
        slices.fold((0, 0), |(used, kept), slice| (used + slice.len(), kept + slice.capacity()))
    }

    #[test]
    fn an_hour_of_scattered_times_takes_at_most_half_as_much_room_again_as_six_minutes() {
        let mut times = FunctionTimes::new("C_Sign", "module.so".to_owned(), Nanos(3));
        let mut buckets = vec![TimeBucket::default(); BUCKETS];
        let mut random = 1_u64;
        let mut rooms = Vec::new();
        for second in 1..=3600 {
            for _ in 0..1000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // Half of them in the lowest of 32 places, and so on.
                let bucket = &mut buckets[300 + (random >> 32).leading_zeros() as usize % 64];
                bucket.count += 1;
                bucket.total_ns += 2000 + second % 100;
            }
            times.add(&buckets, Nanos::from_secs(second));
            let (used, kept) = room(&times);
            assert_eq!(used, kept, "nothing is kept that nobody needs");
            rooms.push(kept);
        }
        let most = |rooms: &[usize]| rooms.iter().copied().max().unwrap_or(0);
        let (early, late) = (most(&rooms[..360]), most(&rooms));
        assert!(late * 2 < early * 3, "{early} places, then {late}");
    }

    #[test]
    fn a_day_takes_no_more_room_than_some_minutes() {
        let mut times = FunctionTimes::new("C_Sign", "module.so".to_owned(), Nanos(3));
        let mut buckets = vec![TimeBucket::default(); BUCKETS];
        let seconds = 86_400;
        for second in 1..=seconds {
            buckets[100].count += 2000;
            buckets[100].total_ns += 2000 * 145;
            times.add(&buckets, Nanos::from_secs(second));
        }
        assert!(times.slices.len() <= MOST_SLICES);
        let total = times.series().total();
        assert_eq!(total.completed, 2000 * seconds);
        assert_eq!(total.min, Nanos(142));
        assert_eq!(total.quantile(0.5), Some(Nanos(142)));
    }
}
