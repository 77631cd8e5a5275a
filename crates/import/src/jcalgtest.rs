//! Result files of JCAlgTest, the public study of Java Cards: its performance tests.
//!
//! A file has a header (`key; value`), then a block for each method of the Java Card API: what ran,
//! the baseline (the same command without the operation), the measurements less the mean of the
//! baseline, statistics, and the lengths. Or, in place of the times, why there are none:
//!
//! ```text
//! method name:; ALG_SHA MessageDigest_update()
//! measurement config:;appletPrepareINS;34;appletMeasureINS;41;config;00 15 00 01 …
//! baseline measurements (ms):;198,00;195,00;200,00;195,00;197,00;
//! baseline stats (ms):;avg:;197,00;min:;195,00;max:;200,00;
//! operation raw measurements (ms):;751,00;754,00;749,00;753,00;753,00;
//! operation stats (ms/op):;avg op:;15,04;min op:;14,98;max op:;15,08;
//! operation info:;data length;256;total iterations;250;total invocations;250;
//! ```
//!
//! Numbers have a decimal comma or a decimal point, as the machine was set.
//!
//! **Names.** An operation is called `jcalgtest.`, then the words of JCAlgTest's name in lower case
//! with dots between, without the brackets: `jcalgtest.alg_sha.messagedigest_update`. Constants
//! whose words older versions write apart are joined as newer ones have them: `TYPE DSA PRIVATE
//! LENGTH DSA 512 clearX()` is `jcalgtest.type_dsa_private.length_dsa_512.clearx`.
//!
//! **Figures.** A measurement holds many operations (usually 50), so `min` and `max` are the
//! smallest and largest *means* of one. The first measurement of each series is warm-up and left
//! out; what is subtracted is the median of the baseline. The interval of the mean is Student's t
//! over the measurements, its half-width combined in quadrature with that of the baseline, and
//! never less than the millisecond that JCAlgTest's clock tells apart. When it reaches zero, and
//! not every measurement lies above every baseline, the difference could as well be negative, and
//! there is no time: the case says so. The published mean, the baseline and the differences stay in
//! `subtraction`, as in every case.

mod block;
mod figures;
mod header;
mod lines;
mod steady;

use std::path::Path;

use sha2::{Digest, Sha256};
use tapstone_files::{FileLimit, read_bytes};
use tapstone_record::{self as record, Card, Reader, Record, Target, TargetKind, Tool};

use self::header::Header;
use self::lines::Content;
use crate::{ImportError, Imported};

/// The largest known file has 0.8 MB.
const LARGEST: FileLimit = FileLimit::mebibytes(64);

/// Reads a result file. `tool` is the program that writes the record.
///
/// # Errors
/// When the file cannot be read, is not JCAlgTest's, or holds no measurement at all.
pub fn read(path: &Path, tool: Tool) -> Result<Imported, ImportError> {
    let unreadable = |source| ImportError::Read { path: path.into(), source };
    from_bytes(&read_bytes(path, LARGEST).map_err(unreadable)?, path, tool)
}

/// Reads the content of a result file; `path` is what it is called.
///
/// # Errors
/// As [`read`], apart from the file.
pub fn from_bytes(content: &[u8], path: &Path, tool: Tool) -> Result<Imported, ImportError> {
    let Content { header, blocks, skipped } = lines::read(content);
    if !header.is_jcalgtest() {
        return Err(ImportError::NotJcAlgTest { path: path.into() });
    }
    if blocks.is_empty() {
        return Err(ImportError::NoMeasurements { path: path.into() });
    }
    let started_at = header.started_at().unwrap_or_default();
    let mut record = Record::new(tool, started_at, record::Environment::default(), target(&header));
    record.imported = Some(record::Imported {
        format: "jcalgtest".into(),
        file: path.display().to_string(),
        sha256: hex::encode(Sha256::digest(content)),
        made_by: header.made_by(),
        lines_skipped: skipped.len() as u64,
    });
    record.results = blocks.iter().map(figures::case_of_block).collect();
    record.warnings = warnings(&header, &record, skipped.len());
    Ok(Imported { record, skipped })
}

fn target(header: &Header) -> Target {
    let mut target = Target::new(TargetKind::Card);
    target.card = header.atr().map(|atr| Card {
        atr,
        protocol: header.get("Used protocol"),
        name: header.get("Card name"),
    });
    target.reader = header.get("Used reader").map(|name| {
        let name = name.strip_prefix("PC/SC terminal ").unwrap_or(&name).to_owned();
        Reader { name, driver_version: None }
    });
    target
}

/// What holds for all cases.
fn warnings(header: &Header, record: &Record, skipped: usize) -> Vec<String> {
    let by = header.made_by().unwrap_or_else(|| "JCAlgTest".into());
    let mut warnings = vec![
        format!("the figures were made by {by}, on a machine that the file does not tell"),
        "a measurement holds many operations: shortest and longest are means of one measurement"
            .to_owned(),
    ];
    warnings.push(match header.started_at() {
        Some(_) => "the file gives local time without its zone: it is taken for UTC".to_owned(),
        None => "the file does not say when it was made".to_owned(),
    });
    if header.atr().is_none() {
        warnings.push("the file does not give the card's ATR".to_owned());
    }
    let lost = |case: &&record::CaseResult| figures::is_not_above_baseline(case);
    match record.results.iter().filter(lost).count() {
        0 => {}
        1 => warnings.push("1 method is not above its baseline, and has no time".to_owned()),
        cases => {
            warnings.push(format!("{cases} methods are not above their baseline, and have no time"))
        }
    }
    match skipped {
        0 => {}
        1 => warnings.push("1 line of the file could not be read".to_owned()),
        lines => warnings.push(format!("{lines} lines of the file could not be read")),
    }
    warnings
}
