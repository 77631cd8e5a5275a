//! M/D/c queues, whose latencies are known by formula: what a search for a rate is held against.

/// Poisson arrivals at servers that take a constant time: M/D/c, first come, first served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub(crate) servers: usize,
    /// Seconds that each server takes for a request.
    pub(crate) service: f64,
    /// Seconds, from arrival to end of service.
    pub(crate) bound: f64,
}

impl Queue {
    pub(crate) fn capacity(&self) -> f64 {
        self.servers as f64 / self.service
    }

    /// The share of arrivals that take longer than the bound, exactly (Franx, A simple solution
    /// for the M/D/c waiting time distribution, Oper. Res. Lett. 29, 2001).
    pub(crate) fn share_beyond(&self, rate: f64) -> f64 {
        let wait = self.bound - self.service;
        let servers = self.servers;
        let probabilities = self.numbers_in_system(rate);
        let mut sums = Vec::with_capacity(probabilities.len());
        probabilities.iter().fold(0.0, |sum, probability| {
            sums.push(sum + probability);
            sum + probability
        });
        let periods = (wait / self.service).floor() as usize + 1;
        let rest = rate * (periods as f64 * self.service - wait);
        let mut poisson = (-rest).exp();
        let mut within = 0.0;
        for arrivals in 0..periods * servers {
            within += poisson * sums[servers + periods * servers - 1 - arrivals];
            poisson *= rest / (arrivals + 1) as f64;
        }
        1.0 - within
    }

    /// How many are in the system at any moment: what is there a service time later are those that
    /// waited, and who came meanwhile (Crommelin 1932).
    fn numbers_in_system(&self, rate: f64) -> Vec<f64> {
        const MOST: usize = 400;
        let mean = rate * self.service;
        let mut coming = vec![(-mean).exp()];
        for number in 1..MOST {
            coming.push(coming[number - 1] * mean / number as f64);
        }
        let mut now = vec![0.0; MOST];
        now[0] = 1.0;
        loop {
            let mut next = vec![0.0; MOST];
            for (present, probability) in now.iter().enumerate().filter(|(_, p)| **p > 1e-18) {
                let left = present.saturating_sub(self.servers);
                for (number, next) in next[left..].iter_mut().enumerate().take(60) {
                    *next += probability * coming[number];
                }
            }
            let total: f64 = next.iter().sum();
            next.iter_mut().for_each(|probability| *probability /= total);
            let change: f64 = next.iter().zip(&now).map(|(a, b)| (a - b).abs()).sum();
            now = next;
            if change < 1e-13 {
                return now;
            }
        }
    }

    /// The rate at which this share lies beyond the bound.
    pub(crate) fn limit(&self, share: f64) -> f64 {
        let mut low = 0.01 * self.capacity();
        let mut high = 0.97 * self.capacity();
        for _ in 0..50 {
            let middle = (low + high) / 2.0;
            *(if self.share_beyond(middle) > share { &mut high } else { &mut low }) = middle;
        }
        low
    }
}
