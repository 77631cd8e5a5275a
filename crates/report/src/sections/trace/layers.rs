//! Whose time it was: a bar for each layer of the main thread, a line for each other thread.
//! Threads run at the same time, so nothing is ever added over them.

use tapstone_measure::units::Nanos;
use tapstone_record::{Layer, Record};
use tapstone_text::{Foreign, thousands};

use super::super::charts;
use super::super::grid::{Entry, Grid, Keep, figures as right, words as left};
use super::super::page::Page;
use super::super::span::{Span, Tint};
use crate::style::Style;
use crate::{figures, words};

/// Other threads than the main one that have a line of their own.
const THREADS: usize = 6;

/// Layers that the line of a thread names.
const NAMED: usize = 3;

/// The layers of one thread, the largest first.
struct ThreadLayers<'a> {
    process: u32,
    id: u32,
    layers: Vec<&'a Layer>,
}

pub(super) fn add_layers(page: &mut Page, record: &Record, style: &Style) {
    let threads = threads(&record.layers);
    let Some((main, others)) = threads.split_first() else { return };
    let name = match (main.process, main.id) {
        (process, thread) if process == thread => format!("main thread {thread}"),
        (process, thread) => format!("thread {thread} of process {process}"),
    };
    // Where there are several, the one in front may be none that the user has named.
    let program = record.processes.iter().find(|it| it.process == main.process);
    let of = match program.filter(|_| record.processes.len() > 1) {
        Some(process) => format!(" of {}", Foreign::new(process.program.as_str())),
        None => String::new(),
    };
    let about = format!("{name}{of} · {}", main.wall());
    page.heading_of_conclusions("time by layer", &about);
    page.chart(charts::layers(&main.layers));
    page.grid(&grid(main, (page.width() / 4).min(40)));
    if others.is_empty() {
        return;
    }
    page.blank();
    let shown = super::shown(others.len(), THREADS, style);
    for thread in &others[..shown] {
        page.line(&[Span::faint(thread.line(main.process))]);
    }
    super::left_out(page, others.len() - shown);
}

/// By thread, in the order of the record: the main thread stands in front.
fn threads(layers: &[Layer]) -> Vec<ThreadLayers<'_>> {
    let mut threads: Vec<ThreadLayers<'_>> = Vec::new();
    for layer in layers {
        let process = layer.process;
        let id = layer.thread;
        let known = threads.iter_mut().find(|of| (of.process, of.id) == (process, id));
        match known {
            Some(thread) => thread.layers.push(layer),
            None => threads.push(ThreadLayers { process, id, layers: vec![layer] }),
        }
    }
    for thread in &mut threads {
        thread.layers.sort_by_key(|layer| std::cmp::Reverse(layer.time_ns));
    }
    threads
}

impl ThreadLayers<'_> {
    /// Its layers add up to this.
    fn wall(&self) -> Nanos {
        self.layers.iter().map(|layer| layer.time_ns).sum()
    }

    /// `  thread 4212: 12.0 ms · PC/SC client 80.0 %, program 20.0 %`.
    fn line(&self, main: u32) -> String {
        let process = match self.process {
            process if process == main => String::new(),
            other => format!(" of process {other}"),
        };
        let named = self.layers.iter().take(NAMED);
        let shares: Vec<String> = named
            .map(|layer| format!("{} {}", words::layer(&layer.layer), figures::share(layer.share)))
            .collect();
        let more = match self.layers.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {} more", thousands(more as u64)),
        };
        format!("  thread {}{process}: {} · {}{more}", self.id, self.wall(), shares.join(", "))
    }
}

fn grid(thread: &ThreadLayers<'_>, bar_width: usize) -> Grid {
    let columns = vec![
        left("layer", Keep::Always),
        right("time", Keep::Always),
        right("share", Keep::Always),
        left("", Keep::Rank(1)),
    ];
    let cells = |layer: &&Layer| {
        Entry::Cells(vec![
            Span::plain(words::layer(&layer.layer)),
            Span::new(layer.time_ns.to_string(), Tint::Strong),
            Span::plain(figures::share(layer.share)),
            Span::bar(layer.share.0, bar_width, Tint::Accent),
        ])
    };
    Grid { columns, entries: thread.layers.iter().map(cells).collect() }
}
