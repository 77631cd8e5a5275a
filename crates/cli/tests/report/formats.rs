//! Records in the formats of other programs, read by parsers that are not ours: JUnit's XML by Python's,
//! OpenMetrics by that of Prometheus' client for Python.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tapstone_testing::skip;

use crate::{EXAMPLES, example, refused, report};

/// What a parser in Python makes of a text: it is given on standard input.
fn parsed(python: &Path, program: &str, text: &str) -> String {
    let mut child = Command::new(python)
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "refused:\n{text}");
    String::from_utf8(output.stdout).unwrap()
}

/// A Python that has this module: the one that scripts/setup made, or the system's.
fn python(module: &str) -> Option<PathBuf> {
    let program = std::env::current_exe().unwrap();
    let target = program.ancestors().nth(3).unwrap();
    let pythons = [target.join("tools/python/bin/python3"), PathBuf::from("python3")];
    let has = |python: &PathBuf| {
        let output = Command::new(python).args(["-c", &format!("import {module}")]).output();
        output.is_ok_and(|output| output.status.success())
    };
    pythons.into_iter().find(has)
}

fn shown(name: &str, format: &str) -> String {
    let output = report(&[&example(name)], &["--format", format]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_record_is_junit_to_a_parser_of_xml() {
    let Some(python) = python("xml.etree.ElementTree") else {
        return skip("python3 (scripts/setup test)");
    };
    let program = "
import sys, xml.etree.ElementTree as tree
root = tree.fromstring(sys.stdin.buffer.read())
assert root.tag == 'testsuites', root.tag
for suite in root.iter('testsuite'):
    cases = list(suite.iter('testcase'))
    for kind in ['failure', 'error']:
        told = int(suite.get(kind + 's'))
        assert told == sum(case.find(kind) is not None for case in cases), kind
    assert int(suite.get('tests')) == len(cases)
    for case in cases:
        print(case.get('classname'), case.get('name'), sep='|')
";
    for name in EXAMPLES {
        let cases = parsed(&python, program, &shown(name, "junit"));
        if name == "token" {
            assert!(cases.contains("claim|rsa2048.sign >= 5000/s"), "{cases}");
        }
        if name == "comparison" {
            assert!(cases.contains("comparison|"), "{cases}");
        }
    }
}

#[test]
fn every_record_is_openmetrics_to_prometheus_own_parser() {
    let Some(python) = python("prometheus_client.openmetrics.parser") else {
        return skip("prometheus_client (scripts/setup test)");
    };
    let program = "
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read
for family in read(sys.stdin.read()):
    for sample in family.samples:
        print(sample.name, sample.labels.get('operation', ''), sample.value)
";
    for name in EXAMPLES {
        let samples = parsed(&python, program, &shown(name, "openmetrics"));
        assert!(samples.contains("tapstone_record_info "), "{samples}");
        if name == "token" {
            for end in ["", "_ci_lower", "_ci_upper"] {
                let name = format!("tapstone_operation_rate{end} rsa2048.sign ");
                assert!(samples.contains(&name), "{name}: {samples}");
            }
        }
    }
}

#[test]
fn several_records_are_one_document_or_an_error() {
    let all: Vec<PathBuf> = EXAMPLES.iter().map(|name| example(name)).collect();
    let all: Vec<&Path> = all.iter().map(PathBuf::as_path).collect();
    for (format, expected) in
        [("junit", "<testsuite "), ("openmetrics", "tapstone_record_info{"), ("markdown", "### ")]
    {
        let output = report(&all, &["--format", format]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.matches(expected).count(), EXAMPLES.len(), "{text}");
    }
    assert!(refused(&all, &["--format", "json"]).contains("show one record"));
    refused(&all, &["--format", "csv"]);
}
