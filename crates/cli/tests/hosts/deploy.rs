//! What `deploy/` ships is what its programs read: NATS's configuration is tried in `server`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{DEPLOY, command, skip};

/// Where the service is installed.
const INSTALLED: &str = "/usr/bin/tapstone";

fn shipped(file: &str) -> String {
    fs::read_to_string(Path::new(DEPLOY).join(file)).unwrap()
}

/// The documents of a YAML file.
fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

/// The service's file with the program that was built, since only one that exists is right.
fn unit() -> (TempDir, PathBuf) {
    let text = shipped("tapstone-agent.service");
    assert!(text.contains(&format!("ExecStart={INSTALLED} agent ")));
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("tapstone-agent.service");
    fs::write(&path, text.replace(INSTALLED, env!("CARGO_BIN_EXE_tapstone"))).unwrap();
    (directory, path)
}

#[test]
fn systemd_takes_the_service() {
    if command("systemd-analyze").arg("--version").output().is_err() {
        return skip("systemd-analyze (Debian: systemd)");
    }
    let (_directory, path) = unit();
    let verified = command("systemd-analyze").arg("verify").arg(&path).output().unwrap();
    let complaints = String::from_utf8(verified.stderr).unwrap();
    // Other units of this machine are looked at as well.
    let ours: Vec<&str> =
        complaints.lines().filter(|line| line.contains("tapstone-agent")).collect();
    assert!(verified.status.success(), "{complaints}");
    assert_eq!(ours, [""; 0]);

    // From 0, well shut in, to 100. Nothing of it may be lost unseen.
    let exposed = command("systemd-analyze")
        .args(["security", "--offline=yes", "--no-pager", "--threshold=20"])
        .arg(&path)
        .output()
        .unwrap();
    let table = String::from_utf8(exposed.stdout).unwrap();
    assert!(exposed.status.success(), "{table}{}", String::from_utf8_lossy(&exposed.stderr));
    assert!(table.contains("Overall exposure level"), "{table}");
}

#[test]
fn the_manifest_is_whole() {
    let documents = documents(&shipped("kubernetes.yaml"));
    let kinds: Vec<&str> = documents.iter().map(|it| it["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Namespace", "ConfigMap", "StatefulSet"]);
    let [namespace, configuration, deployment] = &documents[..] else { panic!("{kinds:?}") };
    for object in [configuration, deployment] {
        assert_eq!(object["metadata"]["namespace"], namespace["metadata"]["name"]);
    }
    let pod = &deployment["spec"]["template"];
    assert_eq!(deployment["spec"]["selector"]["matchLabels"], pod["metadata"]["labels"]);
    let container = &pod["spec"]["containers"][0];
    assert_eq!(container["resources"]["requests"], container["resources"]["limits"]);
    // Whatever is mounted is there, and each file that is named is in something mounted.
    let names = |list: &Value| -> Vec<String> {
        let of = list.as_array().unwrap().iter();
        of.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    let mut mounted = names(&container["volumeMounts"]);
    mounted.dedup();
    assert_eq!(mounted, names(&pod["spec"]["volumes"]));
    let mounts = container["volumeMounts"].as_array().unwrap();
    let is_mounted = |path: &str| {
        mounts.iter().any(|mount| path.starts_with(mount["mountPath"].as_str().unwrap()))
    };
    let arguments = container["args"].as_array().unwrap().iter().map(|it| it.as_str().unwrap());
    let files: Vec<&str> = arguments.filter(|argument| argument.starts_with('/')).collect();
    assert_eq!(files.len(), 3, "{files:?}");
    assert!(files.iter().all(|file| is_mounted(file)), "{files:?}");
    // Each pod sees its own key and credentials, and no other's.
    let own = |mount: &&Value| {
        mount["subPathExpr"].as_str().is_some_and(|it| it.starts_with("$(POD_NAME)."))
    };
    assert_eq!(mounts.iter().filter(own).count(), 2);
    let told: toml::Table =
        toml::from_str(configuration["data"]["agent.toml"].as_str().unwrap()).unwrap();
    assert!(is_mounted(told["targets"]["hsm-a"]["pin-file"].as_str().unwrap()));
    assert!(is_mounted(told["packet-key"].as_str().unwrap()));
}

#[test]
fn one_configuration_is_shipped_in_two_places() {
    let documents = documents(&shipped("kubernetes.yaml"));
    let mut in_pod: toml::Table =
        toml::from_str(documents[1]["data"]["agent.toml"].as_str().unwrap()).unwrap();
    let mut alone: toml::Table = toml::from_str(&shipped("agent.toml")).unwrap();
    // A pod has a name already, and its files are elsewhere.
    alone.remove("name");
    in_pod["packet-key"] = alone["packet-key"].clone();
    in_pod["targets"]["hsm-a"]["pin-file"] = alone["targets"]["hsm-a"]["pin-file"].clone();
    assert_eq!(in_pod, alone);
}

#[test]
fn the_values_of_the_chart_are_yaml() {
    let values = documents(&shipped("nats-values.yaml"));
    assert_eq!(values[0]["config"]["nats"]["tls"]["enabled"], true);
    let Some(nats) = crate::support::Nats::secured() else { return };
    let lab = nats.credentials().unwrap().ca.with_file_name("nats-values.yaml");
    let merged = &documents(&fs::read_to_string(lab).unwrap())[0]["config"]["merge"];
    assert_eq!(merged["resolver"], "MEMORY");
    assert!(merged["operator"].as_str().unwrap().starts_with("ey"));
    assert_eq!(merged["resolver_preload"].as_object().unwrap().len(), 1);
}

#[test]
fn nothing_secret_is_shipped() {
    for entry in fs::read_dir(DEPLOY).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // What a laboratory made for itself; git leaves it out.
            assert!(path.ends_with("lab"), "{}", path.display());
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("PRIVATE KEY-----"), "{}", path.display());
        // A seed of NATS: SO, SA or SU, and 56 letters in all.
        let is_seed = |word: &str| {
            word.len() == 58 && ["SO", "SA", "SU"].iter().any(|start| word.starts_with(start))
        };
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
        assert_eq!(words.filter(|word| is_seed(word)).count(), 0, "{}", path.display());
    }
}
