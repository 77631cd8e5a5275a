fn main() {
    let mut args = std::env::args().skip(1);
    let fixes = args.by_ref().take_while(|a| a != "--").map(|f| f.parse().unwrap()).collect();
    let options = tapstone_trace::probe::Options { fixes, on: true, ..Default::default() };
    let probe = tapstone_trace::probe::Probe::new(&options).unwrap();
    let program = args.next().unwrap();
    let t = std::time::Instant::now();
    let start = probe.buffer().started();
    let status =
        std::process::Command::new(program).args(args).envs(probe.environment()).status().unwrap();
    let wall = t.elapsed();
    let (file, scale) = probe.buffer().read().unwrap();
    let timeline = tapstone_trace::events::read(&file, &scale, start, start + wall.into()).unwrap();
    eprintln!(
        "{status} {wall:?} processes {} dropped {} unwatched {} applied {:?}",
        probe.buffer().processes(),
        probe.buffer().dropped(),
        probe.buffer().unwatched(),
        probe.buffer().applied()
    );
    eprintln!("{:?}", timeline.processes);
    for thread in &timeline.threads {
        eprintln!(
            "thread {} of {}: {} spans {} leaves {}",
            thread.id,
            thread.process,
            thread.spans.len(),
            thread.leaves.len(),
            thread.wall()
        );
        for (n, span) in thread.spans.iter().enumerate().take(4000) {
            let depth = thread.path(span.parent).count();
            let call = timeline.call(span.call);
            let apdu = span
                .exchange
                .map(|e| {
                    let e = timeline.exchange(e);
                    format!("{:02X?} -> {} {:04X}", e.command, e.received, e.status)
                })
                .unwrap_or_default();
            eprintln!(
                "{:indent$}{} {} {:x} {} [{}<{}] {}",
                "",
                call.function,
                span.time(),
                span.result,
                if span.injected.0 > 0 { format!("INJ {}", span.injected) } else { String::new() },
                call.module,
                call.caller,
                apdu,
                indent = 2 + depth * 2
            );
            for leaf in thread.leaves.iter().filter(|l| l.parent == Some(n as u32)) {
                let c = timeline.call(leaf.call);
                eprintln!(
                    "{:indent$}. {} x{} {} a={} b={} r={} {:?} {}",
                    "",
                    c.function,
                    leaf.count,
                    leaf.time,
                    leaf.a,
                    leaf.b,
                    leaf.result,
                    leaf.on,
                    leaf.text
                        .map(|t| String::from_utf8_lossy(timeline.text(t)).into_owned())
                        .unwrap_or_default(),
                    indent = 4 + depth * 2
                );
            }
        }
        for leaf in thread.leaves.iter().filter(|l| l.parent.is_none()).take(60) {
            let c = timeline.call(leaf.call);
            eprintln!(
                "  - {} x{} {} a={} b={} r={} {:?} [{}] {}",
                c.function,
                leaf.count,
                leaf.time,
                leaf.a,
                leaf.b,
                leaf.result,
                leaf.on,
                c.caller,
                leaf.text
                    .map(|t| String::from_utf8_lossy(timeline.text(t)).into_owned())
                    .unwrap_or_default()
            );
        }
    }
}
