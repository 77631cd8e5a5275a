//! Finds functions by their name, and knows those by number whose arguments mean something.

use crate::functions::{FUNCTIONS, Family, Kind};

/// Functions that are not recorded, but say what the probe has to know: that calls are left without
/// returning, that the program limits its memory, and that it starts another one. Their numbers
/// follow those of [`FUNCTIONS`].
///
/// Some take any number of arguments (execl and the like): what follows a hook finds the stack as
/// its caller left it.
pub const HOOKS: [&str; 22] = [
    "longjmp",
    "_longjmp",
    "siglongjmp",
    "__longjmp_chk",
    "__cxa_begin_catch",
    "setrlimit",
    "setrlimit64",
    "prlimit",
    "prlimit64",
    "mlockall",
    "execve",
    "execv",
    "execvp",
    "execvpe",
    "execl",
    "execlp",
    "execle",
    "posix_spawn",
    "posix_spawnp",
    "_exit",
    "_Exit",
    "quick_exit",
];

/// What one of [`HOOKS`] says, and in which of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// longjmp(3): the first argument is a jmp_buf.
    LongJump,
    /// An exception was caught, by the function that calls this one.
    Catch,
    /// setrlimit(2): a resource, then the limit.
    SetLimit,
    /// prlimit(2): a process, a resource, then the limit.
    SetLimitOf,
    /// mlockall(2): all memory is locked.
    LockMemory,
    /// exec(3): the first argument is a path; this process becomes it.
    Exec,
    /// posix_spawn(3): the second argument is a path; a child becomes it.
    Spawn,
    /// _exit(2): the process ends now, and no object is closed before.
    Exit,
}

/// What the hook of that number says: a place in [`HOOKS`].
pub fn hook(number: usize) -> Hook {
    match number {
        0..4 => Hook::LongJump,
        4 => Hook::Catch,
        5 | 6 => Hook::SetLimit,
        7 | 8 => Hook::SetLimitOf,
        9 => Hook::LockMemory,
        10..17 => Hook::Exec,
        17 | 18 => Hook::Spawn,
        _ => Hook::Exit,
    }
}

/// Which argument of a hook's function is the environment of the program that it starts.
pub fn environment_argument(number: usize) -> Option<usize> {
    match *HOOKS.get(number)? {
        "execve" | "execvpe" => Some(2),
        "posix_spawn" | "posix_spawnp" => Some(5),
        _ => None,
    }
}

/// Functions that are watched, and hooks.
const NAMED: usize = FUNCTIONS.len() + HOOKS.len();
/// Places in the table of names: a power of two, several times as many as there are names.
const BUCKETS: usize = 1024;

/// Hashes of the names as DT_GNU_HASH has them, by number of the function.
pub static HASHES: [u32; NAMED] = hashes();
/// Numbers of functions, from 1, at their hash or at the next place that is free.
static NAMES: [u16; BUCKETS] = names();

/// The name of a function that is watched, or of a hook.
const fn name_of(number: usize) -> &'static str {
    if number < FUNCTIONS.len() { FUNCTIONS[number].name } else { HOOKS[number - FUNCTIONS.len()] }
}

const fn hashes() -> [u32; NAMED] {
    let mut hashes = [0; NAMED];
    let mut number = 0;
    while number < NAMED {
        hashes[number] = gnu_hash(name_of(number).as_bytes());
        number += 1;
    }
    hashes
}

const fn names() -> [u16; BUCKETS] {
    let mut buckets = [0; BUCKETS];
    let hashes = hashes();
    let mut number = 0;
    while number < NAMED {
        let mut at = hashes[number] as usize;
        while buckets[at % BUCKETS] != 0 {
            at += 1;
        }
        buckets[at % BUCKETS] = number as u16 + 1;
        number += 1;
    }
    buckets
}

/// The hash of DT_GNU_HASH: 5381, then times 33 plus the next byte.
pub const fn gnu_hash(name: &[u8]) -> u32 {
    let mut hash = 5381_u32;
    let mut at = 0;
    while at < name.len() {
        hash = hash.wrapping_mul(33).wrapping_add(name[at] as u32);
        at += 1;
    }
    hash
}

/// The number of a function that is watched, or [`FUNCTIONS`]`.len()` and the place of a hook.
pub fn function_number(name: &[u8]) -> Option<usize> {
    let hash = gnu_hash(name);
    let mut at = hash as usize;
    loop {
        let number = usize::from(NAMES[at % BUCKETS]).checked_sub(1)?;
        if HASHES[number] == hash && name_of(number).as_bytes() == name {
            return Some(number);
        }
        at += 1;
    }
}

/// What a function of libc does, if it is one.
#[inline(always)]
pub fn libc_kind(function: u32) -> Option<Kind> {
    match FUNCTIONS.get(function as usize)?.family {
        Family::Libc(kind) => Some(kind),
        _ => None,
    }
}

/// Numbers of functions whose arguments have a meaning of their own, in [`FUNCTIONS`].
#[allow(missing_docs, reason = "each is named like its function")]
pub mod known {
    use crate::functions::FUNCTIONS;

    const fn find_number(name: &str) -> u32 {
        let mut at = 0;
        while at < FUNCTIONS.len() {
            if is_equal(FUNCTIONS[at].name.as_bytes(), name.as_bytes()) {
                return at as u32;
            }
            at += 1;
        }
        panic!("no such function")
    }

    const fn is_equal(one: &[u8], other: &[u8]) -> bool {
        let mut at = 0;
        while at < one.len() && at < other.len() && one[at] == other[at] {
            at += 1;
        }
        at == one.len() && at == other.len()
    }

    macro_rules! numbers {
        ($($constant:ident = $name:literal;)*) => { $(pub const $constant: u32 = find_number($name);)* };
    }

    numbers! {
        C_OPEN_SESSION = "C_OpenSession";
        C_GET_ATTRIBUTE_VALUE = "C_GetAttributeValue";
        C_ENCRYPT = "C_Encrypt";
        C_ENCRYPT_UPDATE = "C_EncryptUpdate";
        C_ENCRYPT_FINAL = "C_EncryptFinal";
        C_DECRYPT = "C_Decrypt";
        C_DECRYPT_UPDATE = "C_DecryptUpdate";
        C_DECRYPT_FINAL = "C_DecryptFinal";
        C_DIGEST = "C_Digest";
        C_DIGEST_UPDATE = "C_DigestUpdate";
        C_DIGEST_FINAL = "C_DigestFinal";
        C_SIGN = "C_Sign";
        C_SIGN_UPDATE = "C_SignUpdate";
        C_SIGN_FINAL = "C_SignFinal";
        C_VERIFY = "C_Verify";
        C_VERIFY_UPDATE = "C_VerifyUpdate";
        C_VERIFY_FINAL = "C_VerifyFinal";
        C_GENERATE_RANDOM = "C_GenerateRandom";
        C_SEED_RANDOM = "C_SeedRandom";
        C_FIND_OBJECTS_INIT = "C_FindObjectsInit";
        C_FIND_OBJECTS = "C_FindObjects";
        C_FIND_OBJECTS_FINAL = "C_FindObjectsFinal";
        C_INITIALIZE = "C_Initialize";
        C_CLOSE_SESSION = "C_CloseSession";
        C_CLOSE_ALL_SESSIONS = "C_CloseAllSessions";
        C_FINALIZE = "C_Finalize";
        C_INIT_TOKEN = "C_InitToken";
        C_INIT_PIN = "C_InitPIN";
        C_SET_PIN = "C_SetPIN";
        C_LOGIN = "C_Login";
        C_LOGOUT = "C_Logout";
        C_LOGIN_USER = "C_LoginUser";
        C_SESSION_CANCEL = "C_SessionCancel";
        C_DESTROY_OBJECT = "C_DestroyObject";
        C_SET_ATTRIBUTE_VALUE = "C_SetAttributeValue";
        C_WAIT_FOR_SLOT_EVENT = "C_WaitForSlotEvent";
        C_CREATE_OBJECT = "C_CreateObject";
        C_COPY_OBJECT = "C_CopyObject";
        C_GENERATE_KEY_PAIR = "C_GenerateKeyPair";
        C_UNWRAP_KEY = "C_UnwrapKey";
        C_ENCRYPT_INIT = "C_EncryptInit";
        C_DECRYPT_INIT = "C_DecryptInit";
        C_DIGEST_INIT = "C_DigestInit";
        C_SIGN_INIT = "C_SignInit";
        C_SIGN_RECOVER_INIT = "C_SignRecoverInit";
        C_VERIFY_INIT = "C_VerifyInit";
        C_VERIFY_RECOVER_INIT = "C_VerifyRecoverInit";
        C_GENERATE_KEY = "C_GenerateKey";
        C_DERIVE_KEY = "C_DeriveKey";
        C_UNWRAP_KEY_AUTHENTICATED = "C_UnwrapKeyAuthenticated";
        C_ENCAPSULATE_KEY = "C_EncapsulateKey";
        C_DECAPSULATE_KEY = "C_DecapsulateKey";
        C_GET_INFO = "C_GetInfo";
        C_GET_SLOT_LIST = "C_GetSlotList";
        C_GET_SLOT_INFO = "C_GetSlotInfo";
        C_GET_TOKEN_INFO = "C_GetTokenInfo";
        C_GET_MECHANISM_LIST = "C_GetMechanismList";
        C_GET_MECHANISM_INFO = "C_GetMechanismInfo";
        C_SIGN_RECOVER = "C_SignRecover";
        C_VERIFY_RECOVER = "C_VerifyRecover";
        C_WRAP_KEY = "C_WrapKey";
        C_GET_OPERATION_STATE = "C_GetOperationState";
        C_GET_SESSION_INFO = "C_GetSessionInfo";
        C_SET_OPERATION_STATE = "C_SetOperationState";
        C_GET_FUNCTION_LIST = "C_GetFunctionList";
        C_GET_INTERFACE_LIST = "C_GetInterfaceList";
        C_GET_INTERFACE = "C_GetInterface";
        SCARD_ESTABLISH_CONTEXT = "SCardEstablishContext";
        SCARD_CONNECT = "SCardConnect";
        SCARD_RECONNECT = "SCardReconnect";
        SCARD_DISCONNECT = "SCardDisconnect";
        SCARD_END_TRANSACTION = "SCardEndTransaction";
        SCARD_CONTROL = "SCardControl";
        SCARD_TRANSMIT = "SCardTransmit";
        SCARD_SET_ATTRIB = "SCardSetAttrib";
        IFDH_TRANSMIT = "IFDHTransmitToICC";
        SLEEP = "sleep";
        USLEEP = "usleep";
        NANOSLEEP = "nanosleep";
        POLL = "poll";
        POLL_CHK = "__poll_chk";
        PPOLL = "ppoll";
        SELECT = "select";
        PSELECT = "pselect";
        EPOLL_WAIT = "epoll_wait";
        ACCEPT = "accept";
        ACCEPT4 = "accept4";
        GETTIMEOFDAY = "gettimeofday";
        TIME = "time";
        OPENAT = "openat";
        FOPEN = "fopen";
        FOPEN64 = "fopen64";
        OPENDIR = "opendir";
        OPENAT64 = "openat64";
        CLOCK_GETTIME = "clock_gettime";
        CLOSE = "close";
        FLOCK = "flock";
        MUTEX_LOCK = "pthread_mutex_lock";
        RDLOCK = "pthread_rwlock_rdlock";
        WRLOCK = "pthread_rwlock_wrlock";
        WAIT3 = "wait3";
        WAIT4 = "wait4";
        WAITPID = "waitpid";
        WAITID = "waitid";
        RECVMSG = "recvmsg";
        SENDMSG = "sendmsg";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_dt_gnu_hash() {
        // Values of "ELF: symbol lookup via DT_HASH and DT_GNU_HASH" (flapenguin.me).
        assert_eq!(gnu_hash(b""), 0x0000_1505);
        assert_eq!(gnu_hash(b"printf"), 0x156b_2bb8);
        assert_eq!(gnu_hash(b"exit"), 0x7c96_7e3f);
        assert_eq!(gnu_hash(b"syscall"), 0xbac2_12a0);
    }

    #[test]
    fn every_function_is_found_by_its_name() {
        for (number, function) in FUNCTIONS.iter().enumerate() {
            assert_eq!(function_number(function.name.as_bytes()), Some(number), "{function:?}");
            assert_eq!(HASHES[number], gnu_hash(function.name.as_bytes()));
        }
        for (number, name) in HOOKS.iter().enumerate() {
            assert_eq!(function_number(name.as_bytes()), Some(FUNCTIONS.len() + number), "{name}");
        }
    }

    #[test]
    fn other_names_are_not_found() {
        for name in ["", "C_Sig", "C_SignX", "printf", "c_sign", "SCardTransmi", "pollx"] {
            assert_eq!(function_number(name.as_bytes()), None, "{name}");
        }
        // A name whose place in the table is another's.
        let bucket = gnu_hash(b"poll") as usize % BUCKETS;
        let neighbour = (0_u32..)
            .map(|number| std::format!("x{number}"))
            .find(|name| gnu_hash(name.as_bytes()) as usize % BUCKETS == bucket);
        assert_eq!(function_number(neighbour.unwrap().as_bytes()), None);
    }

    #[test]
    fn kinds_are_those_of_libc_only() {
        let kind = |name: &[u8]| libc_kind(function_number(name).unwrap() as u32);
        assert_eq!(kind(b"poll"), Some(Kind::Poll));
        assert_eq!(kind(b"getaddrinfo"), Some(Kind::LookupName));
        assert_eq!(kind(b"C_Sign"), None);
        assert_eq!(kind(b"SCardTransmit"), None);
        assert_eq!(kind(b"longjmp"), None);
        assert_eq!(libc_kind(u32::MAX), None);
    }

    #[test]
    fn numbers_are_those_of_the_functions() {
        assert_eq!(FUNCTIONS[known::SCARD_TRANSMIT as usize].name, "SCardTransmit");
        assert_eq!(FUNCTIONS[known::TIME as usize].name, "time");
        assert_eq!(FUNCTIONS[known::C_OPEN_SESSION as usize].name, "C_OpenSession");
    }

    #[test]
    fn each_hook_is_known_for_what_it_says() {
        let said = |name| hook(HOOKS.iter().position(|other| *other == name).unwrap());
        for name in ["longjmp", "_longjmp", "siglongjmp", "__longjmp_chk"] {
            assert_eq!(said(name), Hook::LongJump, "{name}");
        }
        assert_eq!(said("__cxa_begin_catch"), Hook::Catch);
        assert_eq!(said("setrlimit"), Hook::SetLimit);
        assert_eq!(said("setrlimit64"), Hook::SetLimit);
        assert_eq!(said("prlimit"), Hook::SetLimitOf);
        assert_eq!(said("prlimit64"), Hook::SetLimitOf);
        assert_eq!(said("mlockall"), Hook::LockMemory);
        for name in ["execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle"] {
            assert_eq!(said(name), Hook::Exec, "{name}");
        }
        for name in ["_exit", "_Exit", "quick_exit"] {
            assert_eq!(said(name), Hook::Exit, "{name}");
        }
        assert_eq!(said("posix_spawn"), Hook::Spawn);
        assert_eq!(said("posix_spawnp"), Hook::Spawn);
    }

    /// The hash of `o` and 0x90 is that of `p` and `o`: 33 · 0x6F + 0x90 = 33 · 0x70 + 0x6F.
    #[test]
    fn a_name_with_the_hash_of_another_is_not_it() {
        assert_eq!(gnu_hash(b"o\x90ll"), gnu_hash(b"poll"));
        assert!(function_number(b"poll").is_some());
        assert_eq!(function_number(b"o\x90ll"), None);
    }
}
