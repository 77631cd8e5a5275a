//! Every verb, as a run of a second at most.

/// A verb with its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verb {
    pub(crate) name: &'static str,
    /// Separated by blanks; `{null}` stands for the path of the null module, `{reader}` for the name
    /// of the reader with the card, `{ca}` for the certificate of the card's issuer.
    pub(crate) arguments: &'static str,
    /// Files that it writes. An old one of each name is there before.
    pub(crate) outputs: &'static [&'static str],
    /// Its exit code when nothing goes wrong.
    pub(crate) exit: i32,
}

impl Verb {
    /// Whether it speaks to a card.
    pub(crate) fn needs_card(&self) -> bool {
        self.arguments.contains("{reader}")
    }

    /// Whether its results go to standard output, which `trace` leaves to the program.
    pub(crate) fn prints(&self) -> bool {
        !matches!(self.name, "trace" | "report of a page")
    }
}

pub(crate) const VERBS: &[Verb] = &[
    Verb {
        name: "targets",
        arguments: "targets --module {null} --timeout 1s",
        outputs: &[],
        exit: 0,
    },
    Verb {
        name: "token",
        arguments: "token --module {null} --pin-file pin --op rsa1024.sign --no-verify --token-keys \
                    --seconds 0.2 --warm-up 0.05 --timeout 1s --samples samples.parquet --output record.json",
        outputs: &["record.json"],
        exit: 0,
    },
    Verb {
        name: "import",
        arguments: "import jcalgtest card.csv --output record.json",
        outputs: &["record.json"],
        exit: 0,
    },
    Verb { name: "report", arguments: "report input.json", outputs: &[], exit: 0 },
    Verb {
        name: "report of a page",
        arguments: "report input.json --output page.html",
        outputs: &["page.html"],
        exit: 0,
    },
    Verb {
        name: "compare",
        arguments: "compare input.json input.json --output record.json",
        outputs: &["record.json"],
        exit: 0,
    },
    Verb {
        name: "trace",
        arguments: "trace --events kept --perfetto perfetto --folded folded --output record.json \
                    -- ls",
        outputs: &["kept", "perfetto", "folded", "record.json"],
        exit: 0,
    },
    Verb {
        name: "ab",
        arguments: "ab --rounds 2 --warm-up-rounds 0 --output record.json -- true true",
        outputs: &["record.json"],
        exit: 0,
    },
    Verb {
        name: "what-if",
        arguments: "door what-if hid-rsa2048 --output record.json",
        outputs: &["record.json"],
        exit: 0,
    },
    Verb {
        name: "budget",
        arguments: "door budget hid-rsa2048 --output record.json",
        outputs: &["record.json"],
        exit: 1,
    },
    Verb {
        name: "simulate",
        arguments: "door simulate hid-rsa2048 --people 100/h --count 1000 --output record.json",
        outputs: &["record.json"],
        exit: 0,
    },
    Verb {
        name: "import of a log",
        arguments: "import panel-log door.csv --map door.toml --output record.json",
        outputs: &["record.json"],
        exit: 0,
    },
    Verb {
        name: "trial",
        arguments: "trial --fix cache-find --rounds 2 --output record.json -- true",
        outputs: &["record.json"],
        exit: 0,
    },
    Verb { name: "profiles", arguments: "vcard --list-profiles", outputs: &[], exit: 0 },
    Verb { name: "completions", arguments: "completions bash", outputs: &[], exit: 0 },
    Verb { name: "help", arguments: "--help", outputs: &[], exit: 0 },
];

/// Verbs that find nothing to talk to, and say so: no pcscd, no NATS server.
pub(crate) const ALONE: &[Verb] = &[
    Verb {
        name: "card without pcscd",
        arguments: "card --output record.json",
        outputs: &["record.json"],
        exit: 2,
    },
    Verb {
        name: "pcsc without pcscd",
        arguments: "pcsc --output record.json",
        outputs: &["record.json"],
        exit: 2,
    },
    Verb {
        name: "vcard without pcscd",
        arguments: "vcard bench --port 1 --wait 100ms",
        outputs: &[],
        exit: 2,
    },
    Verb {
        name: "token --hosts without NATS",
        arguments: "token --hosts 2 --nats nats://127.0.0.1:1 --insecure-no-tls --enrolment known.toml \
                    --target hsm --op rsa1024.sign --output record.json",
        outputs: &["record.json"],
        exit: 2,
    },
    Verb {
        name: "agent without NATS",
        arguments: "agent --nats nats://127.0.0.1:1 --insecure-no-tls --config agent.toml",
        outputs: &[],
        exit: 2,
    },
];

/// Verbs that speak to a card, which is in the reader.
pub(crate) const WITH_CARD: &[Verb] = &[
    Verb {
        name: "card",
        arguments: "card --reader {reader} --rounds 3 --output record.json",
        outputs: &["record.json"],
        exit: 0,
    },
    Verb {
        name: "pcsc",
        arguments: "pcsc --reader {reader} --op status --op begin_transaction --op transmit \
                    --seconds 0.1 --warm-up 0.05 --output record.json",
        outputs: &["record.json"],
        exit: 0,
    },
    Verb {
        name: "door measure",
        arguments: "door measure --reader {reader} --trust {ca} --strategy plain --rounds 2 \
                    --output record.json",
        outputs: &["record.json"],
        exit: 0,
    },
];
