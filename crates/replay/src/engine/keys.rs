//! The keys of a replay: made with what they are used for, and destroyed by their handles.

use cryptoki_sys::*;
use tapstone_module::{Session, Template};
use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function, Rv};
use tapstone_token_operations::catalogue::KeySpec;
use tapstone_token_operations::material::KeyMaterial;

use super::{ReplaySite, ReplayTrouble};
use crate::steps::{KeyOrder, KeyUses, ReplayProcess};

/// A key that was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct MadeKey {
    /// The private half of a pair, or the secret key.
    pub(super) own: CK_OBJECT_HANDLE,
    /// The public half, or the secret key again.
    pub(super) public: CK_OBJECT_HANDLE,
    /// The private half asks for a login of its own for each operation.
    pub(super) asks_for_pin: bool,
}

/// All keys of a process, or none.
pub(super) fn make_keys(
    site: &ReplaySite<'_>,
    process: &ReplayProcess,
) -> Result<Vec<MadeKey>, ReplayTrouble> {
    let mut made = Vec::new();
    for (number, order) in process.keys.iter().enumerate() {
        match make_somewhere(site, *order, number as u32, process.on_token) {
            Ok(key) => made.push(key),
            Err(trouble) => {
                destroy_keys(site.main, &made).ok();
                return Err(trouble);
            }
        }
    }
    Ok(made)
}

/// As a session object where that is wanted and the token has them, else on the token.
fn make_somewhere(
    site: &ReplaySite<'_>,
    order: KeyOrder,
    number: u32,
    on_token: bool,
) -> Result<MadeKey, ReplayTrouble> {
    let id = (site.key_id)(number);
    if !on_token {
        // A secret that may be read lets software judge what is made with it.
        if order.spec.secret_bytes().is_some()
            && let Ok(key) = make(site, order, &id, KeyPlace::ReadableInSession)
        {
            return Ok(key);
        }
        match make(site, order, &id, KeyPlace::InSession) {
            Ok(key) => return Ok(key),
            Err(failure) if site.read_only || !failure.code.is_about_template() => {
                return Err(failure.into());
            }
            Err(_) => {}
        }
    }
    (site.note)(&id).map_err(ReplayTrouble::NotNoted)?;
    Ok(make(site, order, &id, KeyPlace::OnToken)?)
}

/// Where a key lives, and who may read it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyPlace {
    InSession,
    ReadableInSession,
    OnToken,
}

fn make(
    site: &ReplaySite<'_>,
    order: KeyOrder,
    id: &[u8],
    place: KeyPlace,
) -> Result<MadeKey, Pkcs11Failure> {
    let on_token = place == KeyPlace::OnToken;
    let is_readable = place == KeyPlace::ReadableInSession;
    let common = |template: Template| {
        template.flag(CKA_TOKEN, on_token).bytes(CKA_LABEL, site.run.as_bytes()).bytes(CKA_ID, id)
    };
    let unknown = Pkcs11Failure {
        call: Pkcs11Function::C_GenerateKeyPair,
        code: Rv(CKR_MECHANISM_INVALID as u64),
    };
    let mechanism = order.spec.generation().ok_or(unknown)?.number();
    if let Some(bytes) = order.spec.secret_bytes() {
        let mut template = Template::new()
            .number(CKA_CLASS, CKO_SECRET_KEY)
            .number(CKA_KEY_TYPE, order.spec.key_type().unwrap_or(CKK_GENERIC_SECRET))
            .flag(CKA_PRIVATE, site.private)
            .flag(CKA_SENSITIVE, !is_readable)
            .flag(CKA_EXTRACTABLE, is_readable)
            .number(CKA_VALUE_LEN, bytes as CK_ULONG);
        for uses in used_halves(order.uses) {
            template = template.flag(uses.own, true);
            template = uses.public.into_iter().fold(template, |it, kind| it.flag(kind, true));
        }
        let key = site.main.generate_key(mechanism, common(template))?;
        return Ok(MadeKey { own: key, public: key, asks_for_pin: false });
    }
    let mut private = Template::new()
        .flag(CKA_PRIVATE, site.private)
        .flag(CKA_SENSITIVE, true)
        .flag(CKA_EXTRACTABLE, false);
    // Of a public object nobody is asked anything.
    let asks_for_pin = order.always_authenticate && site.pin.is_some();
    if asks_for_pin {
        private = private.flag(CKA_ALWAYS_AUTHENTICATE, true);
    }
    for uses in used_halves(order.uses) {
        private = private.flag(uses.own, true);
    }
    let mut first_failure = None;
    for mut public in named_pairs(order.spec) {
        for kind in used_halves(order.uses).filter_map(|uses| uses.public) {
            public = public.flag(kind, true);
        }
        match site.main.generate_key_pair(mechanism, common(public), common(private.clone())) {
            Ok((public, own)) => return Ok(MadeKey { own, public, asks_for_pin }),
            Err(failure) => first_failure = first_failure.or(Some(failure)),
        }
    }
    Err(first_failure.unwrap_or(unknown))
}

/// What the halves of a pair are allowed to do.
#[derive(Clone, Copy)]
pub(super) struct PairUse {
    pub(super) own: CK_ATTRIBUTE_TYPE,
    /// Of an agreement the public half takes no part in it.
    pub(super) public: Option<CK_ATTRIBUTE_TYPE>,
}

/// What the halves of a pair, or a secret, must be allowed to do.
pub(super) fn used_halves(uses: KeyUses) -> impl Iterator<Item = PairUse> {
    let pair = |is_used, own, public| (is_used, PairUse { own, public });
    [
        pair(uses.sign || uses.verify, CKA_SIGN, Some(CKA_VERIFY)),
        pair(uses.encrypt || uses.decrypt, CKA_DECRYPT, Some(CKA_ENCRYPT)),
        pair(uses.derive, CKA_DERIVE, None),
        pair(uses.unwrap, CKA_UNWRAP, Some(CKA_WRAP)),
    ]
    .into_iter()
    .filter_map(|(is_used, halves)| is_used.then_some(halves))
}

/// The public half, in each way to name what is wanted.
pub(super) fn named_pairs(spec: KeySpec) -> Vec<Template> {
    match spec {
        KeySpec::Rsa { bits } => vec![
            Template::new()
                .number(CKA_MODULUS_BITS, bits as CK_ULONG)
                .bytes(CKA_PUBLIC_EXPONENT, &[0x01, 0x00, 0x01]),
        ],
        spec => {
            let named = |params: &&[u8]| Template::new().bytes(CKA_EC_PARAMS, params);
            spec.ec_params().iter().map(named).collect()
        }
    }
}

/// What a token tells of a key: the public half, or the value of a secret that may be read.
pub(super) fn known_key(main: &Session, spec: KeySpec, key: MadeKey) -> KeyMaterial {
    let read = |attribute| main.attribute(key.public, attribute).ok();
    let known = match spec {
        KeySpec::Rsa { .. } => read(CKA_MODULUS)
            .zip(read(CKA_PUBLIC_EXPONENT))
            .map(|(modulus, exponent)| KeyMaterial::rsa(&modulus, &exponent)),
        spec if spec.secret_bytes().is_some() => {
            read(CKA_VALUE).map(|value| KeyMaterial::secret(&value))
        }
        spec => read(CKA_EC_POINT).and_then(|point| KeyMaterial::public(spec, &point).ok()),
    };
    known.unwrap_or(KeyMaterial::None)
}

/// An object for reads of objects that no operation used: a small one of the session's own, where
/// such reads are and the token makes one.
pub(super) fn make_stand_in(
    site: &ReplaySite<'_>,
    process: &ReplayProcess,
) -> Option<CK_OBJECT_HANDLE> {
    let mut steps = process.threads.iter().flat_map(|thread| &thread.steps);
    let is_needed = steps.any(|step| step.reads_stand_in());
    is_needed.then(|| site.main.create_labelled_object(site.run).ok()).flatten()
}

/// Destroys keys that this process made.
pub(super) fn destroy_keys(main: &Session, keys: &[MadeKey]) -> Result<(), Pkcs11Failure> {
    let mut outcome = Ok(());
    for key in keys {
        outcome = outcome.and(main.destroy_object(key.own));
        if key.public != key.own {
            outcome = outcome.and(main.destroy_object(key.public));
        }
    }
    outcome
}
