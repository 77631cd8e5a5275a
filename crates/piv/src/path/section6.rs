//! Basic path validation: RFC 5280, section 6.1, for one path whose signatures hold. Revocation is
//! apart from it, and so are the profiles of PIV.

use std::collections::BTreeSet;

use der::asn1::ObjectIdentifier;

use super::name_constraints::ConstrainedNames;
use super::policy::{ANY_POLICY, PolicyGraph};
use crate::certificate::Certificate;
use crate::denial::Denial;
use crate::time::Time;

/// The inputs of 6.1.1 beside path, time and anchor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyInputs {
    /// user-initial-policy-set; `None`: any policy will do.
    pub initial: Option<BTreeSet<ObjectIdentifier>>,
    /// initial-explicit-policy: one of them must be valid along the whole path.
    pub explicit: bool,
    /// initial-policy-mapping-inhibit.
    pub inhibit_mapping: bool,
    /// initial-any-policy-inhibit.
    pub inhibit_any: bool,
}

impl PolicyInputs {
    /// One of these policies must be valid along the whole path.
    #[must_use]
    pub fn one_of(policies: impl IntoIterator<Item = ObjectIdentifier>) -> Self {
        let initial = Some(policies.into_iter().collect());
        Self { initial, explicit: true, ..Self::default() }
    }
}

/// The state variables of 6.1.2.
struct State {
    graph: PolicyGraph,
    names: ConstrainedNames,
    explicit_policy: usize,
    inhibit_any: usize,
    policy_mapping: usize,
    max_path_length: usize,
}

/// Validates a path: the anchor, then each certificate that the one before it signed, the leaf
/// last. Names chain, and signatures were verified as the path was built.
pub(crate) fn validate_path(
    anchor: &Certificate,
    chain: &[&Certificate],
    inputs: &PolicyInputs,
    at: Time,
) -> Result<(), Denial> {
    let mut state = State::new(anchor, chain.len(), inputs);
    let mut above = anchor;
    for (place, certificate) in chain.iter().enumerate() {
        let is_last = place + 1 == chain.len();
        state.process(certificate, above, is_last, at)?;
        state.policy_is_left(certificate, inputs)?;
        match is_last {
            false => state.prepare_for_next(certificate)?,
            true => state.wrap_up(certificate, inputs)?,
        }
        above = certificate;
    }
    Ok(())
}

impl State {
    /// What the anchor's own certificate constrains counts too, except for its policies (RFC 5937,
    /// 3.2, where the anchor's owner wants it; OpenSSL does the same).
    fn new(anchor: &Certificate, length: usize, inputs: &PolicyInputs) -> Self {
        let unless = |now: bool| if now { 0 } else { length + 1 };
        let mut state = Self {
            graph: PolicyGraph::new(),
            names: ConstrainedNames::default(),
            explicit_policy: unless(inputs.explicit),
            inhibit_any: unless(inputs.inhibit_any),
            policy_mapping: unless(inputs.inhibit_mapping),
            max_path_length: length,
        };
        if let Some(constraints) = &anchor.extensions.name_constraints {
            state.names.add(constraints);
        }
        state.limit_path_length(anchor);
        state
    }

    /// 6.1.3. Signature and revocation are not in here.
    fn process(
        &mut self,
        certificate: &Certificate,
        above: &Certificate,
        is_last: bool,
        at: Time,
    ) -> Result<(), Denial> {
        in_time(certificate, at)?;
        if certificate.issuer_name != above.subject_name {
            let issuer = certificate.issuer();
            return Err(Denial::Untrusted { subject: certificate.subject(), issuer });
        }
        let is_exempt = certificate.is_self_issued() && !is_last;
        if !is_exempt && let Some(name) = self.names.forbidden_name(certificate) {
            return Err(Denial::NameConstraint { subject: certificate.subject(), name });
        }
        let any_counts = self.inhibit_any > 0 || is_exempt;
        self.graph.add_certificate(&certificate.extensions.policies, any_counts);
        understood(certificate)
    }

    /// 6.1.3 (f).
    fn policy_is_left(
        &self,
        certificate: &Certificate,
        inputs: &PolicyInputs,
    ) -> Result<(), Denial> {
        match self.explicit_policy == 0 && self.graph.is_null() {
            true => Err(no_policy(certificate, inputs)),
            false => Ok(()),
        }
    }

    /// 6.1.4.
    fn prepare_for_next(&mut self, certificate: &Certificate) -> Result<(), Denial> {
        let extensions = &certificate.extensions;
        let mappings = &extensions.mappings;
        if mappings.iter().any(|(one, other)| *one == ANY_POLICY || *other == ANY_POLICY) {
            return Err(Denial::PolicyMapping { subject: certificate.subject() });
        }
        self.graph.map(mappings, self.policy_mapping > 0);
        if let Some(constraints) = &extensions.name_constraints {
            self.names.add(constraints);
        }
        let counts = !certificate.is_self_issued();
        if counts {
            self.explicit_policy = self.explicit_policy.saturating_sub(1);
            self.policy_mapping = self.policy_mapping.saturating_sub(1);
            self.inhibit_any = self.inhibit_any.saturating_sub(1);
        }
        let least =
            |value: usize, skip: Option<u32>| skip.map_or(value, |skip| value.min(skip as usize));
        if let Some(constraints) = &extensions.policy_constraints {
            self.explicit_policy = least(self.explicit_policy, constraints.require_explicit_policy);
            self.policy_mapping = least(self.policy_mapping, constraints.inhibit_policy_mapping);
        }
        self.inhibit_any = least(self.inhibit_any, extensions.inhibit_any_policy);
        is_issuing_ca(certificate)?;
        if counts {
            self.max_path_length = self
                .max_path_length
                .checked_sub(1)
                .ok_or_else(|| Denial::PathTooLong { subject: certificate.subject() })?;
        }
        self.limit_path_length(certificate);
        Ok(())
    }

    fn limit_path_length(&mut self, ca: &Certificate) {
        let constraints = ca.extensions.basic_constraints.as_ref();
        if let Some(most) = constraints.and_then(|constraints| constraints.path_len_constraint) {
            self.max_path_length = self.max_path_length.min(usize::from(most));
        }
    }

    /// 6.1.5.
    fn wrap_up(&mut self, leaf: &Certificate, inputs: &PolicyInputs) -> Result<(), Denial> {
        self.explicit_policy = self.explicit_policy.saturating_sub(1);
        let constraints = leaf.extensions.policy_constraints.as_ref();
        if constraints.is_some_and(|constraints| constraints.require_explicit_policy == Some(0)) {
            self.explicit_policy = 0;
        }
        if self.explicit_policy > 0 || self.graph.has_valid(inputs.initial.as_ref()) {
            return Ok(());
        }
        Err(no_policy(leaf, inputs))
    }
}

/// `certificate`: the one at which the last policy was lost.
fn no_policy(certificate: &Certificate, inputs: &PolicyInputs) -> Denial {
    let subject = certificate.subject();
    match &inputs.initial {
        None => Denial::NoPolicy { subject },
        Some(wanted) => {
            let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
            Denial::Policy { subject, policy: wanted.join(" or ") }
        }
    }
}

/// 6.1.4 (k) and (n), which an anchor's certificate has to keep too.
pub(crate) fn is_issuing_ca(certificate: &Certificate) -> Result<(), Denial> {
    let extensions = &certificate.extensions;
    let may_sign = extensions.key_usage.is_none_or(|usage| usage.key_cert_sign());
    match extensions.is_ca() && may_sign {
        true => Ok(()),
        false => Err(Denial::NotACa { subject: certificate.subject() }),
    }
}

pub(crate) fn in_time(certificate: &Certificate, at: Time) -> Result<(), Denial> {
    let from = certificate.not_before;
    let until = certificate.not_after;
    if at < from {
        return Err(Denial::NotYetValid { subject: certificate.subject(), from, at });
    }
    if at > until {
        return Err(Denial::Expired { subject: certificate.subject(), until, at });
    }
    Ok(())
}

pub(crate) fn understood(certificate: &Certificate) -> Result<(), Denial> {
    certificate.extensions.critical.map_or(Ok(()), |oid| {
        let subject = certificate.subject();
        Err(Denial::CriticalExtension { subject, oid: oid.to_string() })
    })
}
