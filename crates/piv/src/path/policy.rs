//! Certificate policies along a path: RFC 5280, 6.1, with the graph of RFC 9618 in place of the
//! tree, which a hostile path can make as large as it likes.

use std::collections::{BTreeMap, BTreeSet};

use der::asn1::ObjectIdentifier;

/// anyPolicy (RFC 5280, 4.2.1.4).
pub(super) const ANY_POLICY: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.32.0");

/// The valid_policy_graph. The anchor's level holds anyPolicy alone.
pub(super) struct PolicyGraph {
    levels: Vec<PolicyLevel>,
}

/// The nodes of one certificate.
#[derive(Default)]
struct PolicyLevel {
    any: bool,
    nodes: BTreeMap<ObjectIdentifier, PolicyNode>,
}

/// One policy of one certificate.
#[derive(Default)]
struct PolicyNode {
    /// Policies of the level above; none of a node below anyPolicy.
    parents: BTreeSet<ObjectIdentifier>,
    /// What the next certificate calls it: expected_policy_set.
    expected: BTreeSet<ObjectIdentifier>,
}

impl PolicyNode {
    /// A node that the next certificate knows by its own name.
    fn named(policy: ObjectIdentifier, parents: BTreeSet<ObjectIdentifier>) -> Self {
        Self { parents, expected: BTreeSet::from([policy]) }
    }
}

impl PolicyGraph {
    pub(super) fn new() -> Self {
        Self { levels: vec![PolicyLevel { any: true, nodes: BTreeMap::new() }] }
    }

    /// Nothing is left of it: no policy is valid along the whole path.
    pub(super) fn is_null(&self) -> bool {
        self.levels.last().is_none_or(|level| !level.any && level.nodes.is_empty())
    }

    /// 6.1.3 (d) and (e): the policies that a certificate asserts. `any_counts`: anyPolicy is not
    /// inhibited here.
    pub(super) fn add_certificate(&mut self, asserted: &[ObjectIdentifier], any_counts: bool) {
        let above = self.levels.last().expect("the anchor's level is never taken away");
        let expected = above.by_expected();
        let mut level = PolicyLevel::default();
        for policy in asserted.iter().filter(|policy| **policy != ANY_POLICY) {
            match expected.get(policy) {
                Some(parents) => {
                    level.nodes.insert(*policy, PolicyNode::named(*policy, parents.clone()));
                }
                None if above.any => {
                    level.nodes.insert(*policy, PolicyNode::named(*policy, BTreeSet::new()));
                }
                None => {}
            }
        }
        if any_counts && asserted.contains(&ANY_POLICY) {
            level.any = above.any;
            for (policy, parents) in expected {
                level.nodes.entry(policy).or_insert_with(|| PolicyNode::named(policy, parents));
            }
        }
        self.levels.push(level);
    }

    /// 6.1.4 (b): what the certificates below call the policies. `may_map`: mapping is not
    /// inhibited here.
    pub(super) fn map(&mut self, mappings: &[(ObjectIdentifier, ObjectIdentifier)], may_map: bool) {
        let level = self.levels.last_mut().expect("a certificate was added");
        let mut by_issuer: BTreeMap<ObjectIdentifier, BTreeSet<ObjectIdentifier>> = BTreeMap::new();
        for (issuer, subject) in mappings {
            by_issuer.entry(*issuer).or_default().insert(*subject);
        }
        for (issuer, subjects) in by_issuer {
            if !may_map {
                level.nodes.remove(&issuer);
            } else if let Some(node) = level.nodes.get_mut(&issuer) {
                node.expected = subjects;
            } else if level.any {
                level
                    .nodes
                    .insert(issuer, PolicyNode { parents: BTreeSet::new(), expected: subjects });
            }
        }
    }

    /// 6.1.5 (g): whether a policy of the initial set is valid; `None` is any-policy.
    pub(super) fn has_valid(&self, initial: Option<&BTreeSet<ObjectIdentifier>>) -> bool {
        let Some(initial) = initial else { return !self.is_null() };
        let last = self.levels.last().expect("the anchor's level is never taken away");
        if last.any && !initial.is_empty() {
            return true;
        }
        // From the leaf upwards: the nodes that lead to it, down to those of the anchor's domain.
        let mut alive: BTreeSet<ObjectIdentifier> = last.nodes.keys().copied().collect();
        for level in self.levels.iter().rev() {
            let nodes = alive.iter().filter_map(|policy| Some((policy, level.nodes.get(policy)?)));
            let mut above = BTreeSet::new();
            for (policy, node) in nodes {
                match node.parents.is_empty() {
                    true if initial.contains(policy) => return true,
                    true => {}
                    false => above.extend(node.parents.iter().copied()),
                }
            }
            alive = above;
        }
        false
    }
}

impl PolicyLevel {
    /// The nodes by what the next certificate calls them.
    fn by_expected(&self) -> BTreeMap<ObjectIdentifier, BTreeSet<ObjectIdentifier>> {
        let mut all: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (policy, node) in &self.nodes {
            for expected in &node.expected {
                all.entry(*expected).or_default().insert(*policy);
            }
        }
        all
    }
}
