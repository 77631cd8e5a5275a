//! The keys of a case: made for the run, or the user's own, found and never changed.
//!
//! What a run makes carries the run's label and an id that starts with [`ID_MARK`]; only objects
//! with both are ever destroyed.

use cryptoki_sys::*;
use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function, Rv};

use super::shapes::shape_work;
use super::shared::{Shared, hexadecimal};
use crate::catalogue::{KeySpec, Variant};
use crate::material::KeyMaterial;
use crate::module::key_templates::{KeyAccess, private_half, public_halves, secret_key};
use crate::module::{Session, Template};
use crate::protocol::{Job, KeyOwner, KeyPlan, KeyReady, Leftover, OwnKey, Trouble};

/// Labels of keys that Tapstone makes start so; the rest names the run.
pub(crate) const LABEL_MARK: &str = "tapstone-";

/// Their CKA_ID starts so, and goes on with the process's and the key's number.
const ID_MARK: &[u8] = b"TAPSTONE";

/// The key number in the ids of keys that operations generate: no key of a case has it.
const NEW_KEY_NUMBER: u32 = u32::MAX;

/// The CKA_ID of all keys that operations of this process generate.
pub(super) fn new_key_id(first_worker: u32) -> Vec<u8> {
    numbered_key_id(first_worker, NEW_KEY_NUMBER)
}

/// The CKA_ID of a key of this process, by its number.
pub(super) fn numbered_key_id(first_worker: u32, number: u32) -> Vec<u8> {
    [ID_MARK, &first_worker.to_be_bytes(), &number.to_be_bytes()].concat()
}

/// A key of a case.
pub(super) struct Key {
    /// What the operation uses: the private half, the secret key, or the public half.
    pub(super) handle: CK_OBJECT_HANDLE,
    pub(super) reference: KeyReference,
    pub(super) ready: KeyReady,
    /// Everything that was made for it; empty for the user's keys.
    own: Vec<CK_OBJECT_HANDLE>,
}

impl Key {
    /// Made for the run, on the token.
    pub(super) fn outlives_sessions(&self) -> bool {
        !self.own.is_empty() && self.ready.on_token
    }
}

/// What a key is found by.
#[derive(Clone, Debug)]
pub(super) struct KeyReference {
    class: CK_OBJECT_CLASS,
    key_type: Option<CK_KEY_TYPE>,
    label: Option<String>,
    id: Option<Vec<u8>>,
}

impl KeyReference {
    /// Everything that operations of this process have generated and not yet destroyed.
    pub(super) fn of_new_keys(job: &Job) -> Self {
        Self {
            class: CKO_PRIVATE_KEY,
            key_type: None,
            label: Some(job.run.clone()),
            id: Some(new_key_id(job.first_worker)),
        }
    }

    /// The key's handle in this session: after a reconnection it is another.
    pub(super) fn find(&self, session: &Session) -> Result<CK_OBJECT_HANDLE, Pkcs11Failure> {
        let found = session.find_objects(self.template(), 1)?;
        let gone = Pkcs11Failure {
            call: Pkcs11Function::C_FindObjects,
            code: Rv(CKR_KEY_HANDLE_INVALID as u64),
        };
        found.first().copied().ok_or(gone)
    }

    fn template(&self) -> Template {
        let mut template = Template::new().number(CKA_CLASS, self.class);
        if let Some(key_type) = self.key_type {
            template = template.number(CKA_KEY_TYPE, key_type);
        }
        if let Some(label) = &self.label {
            template = template.bytes(CKA_LABEL, label.as_bytes());
        }
        if let Some(id) = &self.id {
            template = template.bytes(CKA_ID, id);
        }
        template
    }

    fn wanted(&self) -> String {
        let label = self.label.as_ref().map(|label| format!("label \"{label}\""));
        let id = self.id.as_ref().map(|id| format!("id {}", hexadecimal(id)));
        [label, id].into_iter().flatten().collect::<Vec<_>>().join(" and ")
    }
}

/// What a run's keys are made with.
pub(super) struct KeyMaker<'a> {
    pub(super) session: &'a Session,
    pub(super) shared: &'a Shared,
    pub(super) run: &'a str,
    /// Tells this process's keys from those of the others.
    pub(super) first_worker: u32,
    /// Make values readable where verification needs them.
    pub(super) verify: bool,
    pub(super) read_only: bool,
    /// Logged in: keys can be private.
    pub(super) private: bool,
}

impl KeyMaker<'_> {
    /// The keys of one lane. What was made before a failure is gone again.
    pub(super) fn keys(
        &self,
        lane: u8,
        variant: &Variant,
        plan: &KeyPlan,
    ) -> Result<Vec<Key>, Trouble> {
        if !needs_key(variant) {
            return Ok(Vec::new());
        }
        match plan {
            KeyPlan::Existing { label, id } => {
                self.existing(lane, variant, label.clone(), id.clone()).map(|key| vec![key])
            }
            KeyPlan::Own { count, on_token } => {
                let mut keys = Vec::new();
                for number in 0..*count {
                    match self.own(lane, variant, number, *on_token) {
                        Ok(key) => keys.push(key),
                        Err(trouble) => {
                            destroy(self.session, &mut keys).ok();
                            return Err(trouble);
                        }
                    }
                }
                Ok(keys)
            }
        }
    }

    fn existing(
        &self,
        lane: u8,
        variant: &Variant,
        label: Option<String>,
        id: Option<Vec<u8>>,
    ) -> Result<Key, Trouble> {
        let class = used_class(variant);
        let reference = KeyReference { class, key_type: variant.key.key_type(), label, id };
        let call = |failure| Trouble::Call { lane, failure };
        let found = self.session.find_objects(reference.template(), 16).map_err(call)?;
        let class = class_name(class).to_owned();
        let wanted = reference.wanted();
        match found[..] {
            [] => Err(Trouble::NoKey { class, wanted }),
            [handle] if !self.fits(handle, variant.key) => {
                Err(Trouble::WrongKey { wanted, expected: variant.key.to_string() })
            }
            [handle] => {
                let public = self.public_half(handle, &reference);
                let material = self.material(variant, handle, public);
                let ready = self.ready(handle, material);
                Ok(Key { handle, reference, ready, own: Vec::new() })
            }
            _ => {
                let id = |key: &CK_OBJECT_HANDLE| {
                    hexadecimal(&self.session.attribute(*key, CKA_ID).unwrap_or_default())
                };
                let ids = found.iter().map(id).collect();
                Err(Trouble::ManyKeys { class, wanted, count: found.len(), ids })
            }
        }
    }

    /// Whether the key is on the curve, or of the length, that the operation names. A token that
    /// does not tell is believed.
    fn fits(&self, handle: CK_OBJECT_HANDLE, spec: KeySpec) -> bool {
        let read = |attribute| self.session.attribute(handle, attribute).ok();
        match spec {
            KeySpec::Rsa { bits } => read(CKA_MODULUS).is_none_or(|modulus| {
                let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
                modulus.len() - zeros == bits as usize / 8
            }),
            KeySpec::Ec { .. } | KeySpec::Ed25519 => read(CKA_EC_PARAMS)
                .is_none_or(|params| spec.ec_params().iter().any(|known| *known == params)),
            KeySpec::Aes { .. } | KeySpec::Hmac { .. } => {
                read(CKA_VALUE_LEN).is_none_or(|length| {
                    let length = length.try_into().map(CK_ULONG::from_ne_bytes);
                    length.is_ok_and(|length| Some(length as usize) == spec.secret_bytes())
                })
            }
            KeySpec::MlDsa { .. } | KeySpec::MlKem { .. } | KeySpec::SlhDsa { .. } => {
                read(CKA_PARAMETER_SET).is_none_or(|set| {
                    set.try_into().map(CK_ULONG::from_ne_bytes).ok() == spec.parameter_set()
                })
            }
            KeySpec::None | KeySpec::Des3 => true,
        }
    }

    /// The public key that belongs to a private one, by id, else by label.
    fn public_half(
        &self,
        handle: CK_OBJECT_HANDLE,
        reference: &KeyReference,
    ) -> Option<CK_OBJECT_HANDLE> {
        let id = self.session.attribute(handle, CKA_ID).ok().filter(|id| !id.is_empty());
        let label = reference.label.clone().filter(|_| id.is_none());
        let reference =
            KeyReference { class: CKO_PUBLIC_KEY, key_type: reference.key_type, label, id };
        reference.find(self.session).ok()
    }

    /// Makes a key as a session object where the token allows, else on the token; readable where
    /// verification needs it and the token allows, else not.
    fn own(
        &self,
        lane: u8,
        variant: &Variant,
        number: u32,
        on_token: bool,
    ) -> Result<Key, Trouble> {
        let number = u32::from(lane) << 16 | number;
        let id = numbered_key_id(self.first_worker, number);
        // Software makes cipher texts and wrapped keys under the key that is to open them.
        let needed = shape_work(variant.shape).inputs_need_key_value();
        let readable = (self.verify || needed) && variant.key.secret_bytes().is_some();
        let mut attempts = vec![(on_token, readable)];
        if readable {
            attempts.push((on_token, false));
        }
        if !on_token && !self.read_only {
            attempts.push((true, false));
        }
        let mut first_failure = None;
        for (on_token, readable) in attempts {
            if on_token {
                self.shared.note(self.run, &id)?;
            }
            match self.make(variant, &id, on_token, readable) {
                Ok(key) => return Ok(key),
                Err(failure) if failure.code.is_about_template() => {
                    first_failure.get_or_insert(failure);
                }
                Err(failure) => {
                    let failure = first_failure.unwrap_or(failure);
                    return Err(Trouble::Call { lane, failure });
                }
            }
        }
        let failure = first_failure.unwrap_or(Pkcs11Failure {
            call: Pkcs11Function::C_GenerateKey,
            code: Rv(CKR_TEMPLATE_INCONSISTENT as u64),
        });
        Err(Trouble::Call { lane, failure })
    }

    fn make(
        &self,
        variant: &Variant,
        id: &[u8],
        on_token: bool,
        readable: bool,
    ) -> Result<Key, Pkcs11Failure> {
        let reference = KeyReference {
            class: used_class(variant),
            key_type: variant.key.key_type(),
            label: Some(self.run.to_owned()),
            id: Some(id.to_owned()),
        };
        let common = |template: Template| {
            template
                .flag(CKA_TOKEN, on_token)
                .bytes(CKA_LABEL, self.run.as_bytes())
                .bytes(CKA_ID, reference.id.as_deref().unwrap_or_default())
        };
        let usage = shape_work(variant.shape).key_usage();
        if variant.key.secret_bytes().is_some() {
            let access = KeyAccess { readable, private: self.private };
            let handle = self.session.generate_key(
                mechanism(variant.key),
                common(secret_key(variant.key, usage, access)),
            )?;
            let material = self.material(variant, handle, None);
            let ready = self.ready(handle, material);
            return Ok(Key { handle, reference, ready, own: vec![handle] });
        }
        let (public, private) = self.make_pair(variant, &common)?;
        let handle = if reference.class == CKO_PUBLIC_KEY { public } else { private };
        let material = self.material(variant, private, Some(public));
        let ready = self.ready(handle, material);
        Ok(Key { handle, reference, ready, own: vec![private, public] })
    }

    /// Tokens differ in how they want an Edwards curve to be named: each way is tried.
    fn make_pair(
        &self,
        variant: &Variant,
        common: &impl Fn(Template) -> Template,
    ) -> Result<(CK_OBJECT_HANDLE, CK_OBJECT_HANDLE), Pkcs11Failure> {
        let mut first_failure = None;
        let usage = shape_work(variant.shape).key_usage();
        let access = KeyAccess { readable: false, private: self.private };
        for public in public_halves(variant.key, usage) {
            let private = common(private_half(usage, access));
            match self.session.generate_key_pair(mechanism(variant.key), common(public), private) {
                Ok(pair) => return Ok(pair),
                Err(failure) => first_failure = first_failure.or(Some(failure)),
            }
        }
        Err(first_failure.unwrap_or(Pkcs11Failure {
            call: Pkcs11Function::C_GenerateKeyPair,
            code: Rv(CKR_MECHANISM_INVALID as u64),
        }))
    }

    fn material(
        &self,
        variant: &Variant,
        key: CK_OBJECT_HANDLE,
        public: Option<CK_OBJECT_HANDLE>,
    ) -> KeyMaterial {
        material(self.session, variant.key, key, public).unwrap_or(KeyMaterial::None)
    }

    fn ready(&self, handle: CK_OBJECT_HANDLE, material: KeyMaterial) -> KeyReady {
        let flag = |attribute| self.session.flag(handle, attribute);
        KeyReady {
            material,
            on_token: flag(CKA_TOKEN).unwrap_or(false),
            sensitive: flag(CKA_SENSITIVE),
            extractable: flag(CKA_EXTRACTABLE),
            always_authenticate: flag(CKA_ALWAYS_AUTHENTICATE).unwrap_or(false),
        }
    }
}

/// What software can know of a key.
pub(super) fn material(
    session: &Session,
    spec: KeySpec,
    key: CK_OBJECT_HANDLE,
    public: Option<CK_OBJECT_HANDLE>,
) -> Option<KeyMaterial> {
    let read = |object: CK_OBJECT_HANDLE, attribute| session.attribute(object, attribute).ok();
    match spec {
        KeySpec::None => None,
        KeySpec::Rsa { .. } => {
            let holder = public.unwrap_or(key);
            let exponent = read(holder, CKA_PUBLIC_EXPONENT)?;
            Some(KeyMaterial::rsa(&read(holder, CKA_MODULUS)?, &exponent))
        }
        KeySpec::Ec { .. } | KeySpec::Ed25519 => {
            KeyMaterial::public(spec, &read(public?, CKA_EC_POINT)?).ok()
        }
        KeySpec::MlDsa { .. } | KeySpec::MlKem { .. } | KeySpec::SlhDsa { .. } => {
            KeyMaterial::public(spec, &read(public?, CKA_VALUE)?).ok()
        }
        KeySpec::Aes { .. } | KeySpec::Des3 | KeySpec::Hmac { .. } => {
            read(key, CKA_VALUE).map(|value| KeyMaterial::secret(&value))
        }
    }
}

/// Destroys keys that this process made, by what they are found by: their handles went with a
/// lost device.
pub(super) fn destroy_found(session: &Session, keys: &[KeyReference]) -> Result<(), Pkcs11Failure> {
    let mut first_failure = Ok(());
    for key in keys {
        for class in [CKO_PRIVATE_KEY, CKO_PUBLIC_KEY, CKO_SECRET_KEY] {
            let half = KeyReference { class, ..key.clone() };
            for object in session.find_objects(half.template(), usize::MAX)? {
                first_failure = first_failure.and(session.destroy_object(object));
            }
        }
    }
    first_failure
}

/// Destroys what was made for the keys. The user's own have nothing here to destroy.
pub(super) fn destroy(session: &Session, keys: &mut Vec<Key>) -> Result<(), Pkcs11Failure> {
    let mut first_failure = Ok(());
    for object in keys.drain(..).flat_map(|key| key.own) {
        let gone = session.destroy_object(object);
        first_failure = first_failure.and(gone);
    }
    first_failure
}

/// Which of the keys that runs made are looked for.
pub(super) enum Sought<'a> {
    All,
    /// Those of the run with this label.
    Run(&'a str),
    Keys(&'a [OwnKey]),
}

impl Sought<'_> {
    fn has(&self, label: &str, id: &str) -> bool {
        match self {
            Self::All => true,
            Self::Run(run) => *run == label,
            Self::Keys(keys) => keys.iter().any(|key| (&*key.label, &*key.id) == (label, id)),
        }
    }
}

/// Keys that runs left on the token: by label and id, both Tapstone's.
pub(super) fn leftovers(
    session: &Session,
    sought: &Sought<'_>,
    remove: bool,
) -> Result<Vec<Leftover>, Pkcs11Failure> {
    let mut left = Vec::new();
    for class in [CKO_PRIVATE_KEY, CKO_PUBLIC_KEY, CKO_SECRET_KEY] {
        let template = Template::new().number(CKA_CLASS, class).flag(CKA_TOKEN, true);
        for object in session.find_objects(template, usize::MAX)? {
            let label = session.attribute(object, CKA_LABEL).unwrap_or_default();
            let label = String::from_utf8_lossy(&label).into_owned();
            let id = session.attribute(object, CKA_ID).unwrap_or_default();
            let is_marked = label.starts_with(LABEL_MARK)
                && id.len() == ID_MARK.len() + 8
                && id.starts_with(ID_MARK);
            let id = hexadecimal(&id);
            if is_marked && sought.has(&label, &id) {
                let removed = remove && session.destroy_object(object).is_ok();
                let class = class_name(class).to_owned();
                left.push(Leftover { label, class, id, removed, owner: KeyOwner::Unknown });
            }
        }
    }
    Ok(left)
}

fn needs_key(variant: &Variant) -> bool {
    variant.key != KeySpec::None && shape_work(variant.shape).needs_key()
}

/// The class of the object that the operation is given.
fn used_class(variant: &Variant) -> CK_OBJECT_CLASS {
    if variant.key.secret_bytes().is_some() {
        CKO_SECRET_KEY
    } else {
        shape_work(variant.shape).class_of_pair()
    }
}

fn class_name(class: CK_OBJECT_CLASS) -> &'static str {
    match class {
        CKO_PRIVATE_KEY => "CKO_PRIVATE_KEY",
        CKO_PUBLIC_KEY => "CKO_PUBLIC_KEY",
        _ => "CKO_SECRET_KEY",
    }
}

fn mechanism(spec: KeySpec) -> CK_MECHANISM_TYPE {
    spec.generation().map_or(CKM_VENDOR_DEFINED, |mechanism| mechanism.number())
}
