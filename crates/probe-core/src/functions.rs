//! What is watched: functions of PKCS#11, of PC/SC and of reader drivers, and those of libc in which
//! they wait, look things up or read a clock.

/// What a function is, as far as it is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// A function of a PKCS#11 module.
    Pkcs11,
    /// A function of the PC/SC client library.
    Pcsc,
    /// A function of a reader driver (IFD handler).
    Driver,
    /// A function of libc, watched in the libraries that call it.
    Libc(Kind),
}

/// What a function of libc does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Sleeps; `b` is nanoseconds.
    Sleep,
    /// Waits until something is ready; `b` is the time limit in nanoseconds, `u64::MAX` for none,
    /// `a` the first descriptor.
    Poll,
    /// A function that reads a clock.
    Clock,
    /// Opens a file; the bytes are its path. One that never returned may have none: paths that are
    /// not at hand are read when it is over.
    Open,
    /// Asks about a file; the bytes are its path, as above.
    Stat,
    /// A function that closes descriptor `a`.
    Close,
    /// Reads or receives from `a` up to `b` bytes.
    Read,
    /// Writes or sends `b` bytes to `a`.
    Write,
    /// Connects `a`; the bytes are the address.
    Connect,
    /// Waits for another thread.
    Lock,
    /// Waits for another process, one that this one has started.
    Children,
    /// Asks a database by a name, which the bytes are.
    LookupName,
    /// Asks a database by a number `a`.
    LookupNumber,
}

/// A function that is watched.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Its name, as it is exported.
    pub name: &'static str,
    /// Which interface the function belongs to.
    pub family: Family,
}

const fn watched_function(family: Family, name: &'static str) -> Function {
    Function { name, family }
}

/// Functions of CK_FUNCTION_LIST (PKCS#11 v2.40, 5.1), of CK_FUNCTION_LIST_3_0 and of
/// CK_FUNCTION_LIST_3_2, in the order in which those have them.
pub const PKCS11_V2: usize = 68;
/// All of version 3.0.
pub const PKCS11_V3_0: usize = 92;
/// All of version 3.2.
pub const PKCS11_V3_2: usize = 104;

/// What is watched, by number. The first [`PKCS11_V3_2`] are a PKCS#11 function list.
pub const FUNCTIONS: &[Function] = &TABLE;

/// In memory once, however many crates use it: each name in it is relocated when the probe is loaded.
static TABLE: [Function; FUNCTION_COUNT] = functions();

const FUNCTION_COUNT: usize = PKCS11_V3_2 + PCSC.len() + DRIVER.len() + LIBC.len();

const fn functions() -> [Function; FUNCTION_COUNT] {
    let mut all = [watched_function(Family::Pkcs11, ""); FUNCTION_COUNT];
    let mut at = 0;
    while at < PKCS11.len() {
        all[at] = watched_function(Family::Pkcs11, PKCS11[at]);
        at += 1;
    }
    let mut next = 0;
    while next < PCSC.len() {
        all[at] = watched_function(Family::Pcsc, PCSC[next]);
        at += 1;
        next += 1;
    }
    next = 0;
    while next < DRIVER.len() {
        all[at] = watched_function(Family::Driver, DRIVER[next]);
        at += 1;
        next += 1;
    }
    next = 0;
    while next < LIBC.len() {
        all[at] = watched_function(Family::Libc(LIBC[next].0), LIBC[next].1);
        at += 1;
        next += 1;
    }
    all
}

const PKCS11: [&str; PKCS11_V3_2] = [
    "C_Initialize",
    "C_Finalize",
    "C_GetInfo",
    "C_GetFunctionList",
    "C_GetSlotList",
    "C_GetSlotInfo",
    "C_GetTokenInfo",
    "C_GetMechanismList",
    "C_GetMechanismInfo",
    "C_InitToken",
    "C_InitPIN",
    "C_SetPIN",
    "C_OpenSession",
    "C_CloseSession",
    "C_CloseAllSessions",
    "C_GetSessionInfo",
    "C_GetOperationState",
    "C_SetOperationState",
    "C_Login",
    "C_Logout",
    "C_CreateObject",
    "C_CopyObject",
    "C_DestroyObject",
    "C_GetObjectSize",
    "C_GetAttributeValue",
    "C_SetAttributeValue",
    "C_FindObjectsInit",
    "C_FindObjects",
    "C_FindObjectsFinal",
    "C_EncryptInit",
    "C_Encrypt",
    "C_EncryptUpdate",
    "C_EncryptFinal",
    "C_DecryptInit",
    "C_Decrypt",
    "C_DecryptUpdate",
    "C_DecryptFinal",
    "C_DigestInit",
    "C_Digest",
    "C_DigestUpdate",
    "C_DigestKey",
    "C_DigestFinal",
    "C_SignInit",
    "C_Sign",
    "C_SignUpdate",
    "C_SignFinal",
    "C_SignRecoverInit",
    "C_SignRecover",
    "C_VerifyInit",
    "C_Verify",
    "C_VerifyUpdate",
    "C_VerifyFinal",
    "C_VerifyRecoverInit",
    "C_VerifyRecover",
    "C_DigestEncryptUpdate",
    "C_DecryptDigestUpdate",
    "C_SignEncryptUpdate",
    "C_DecryptVerifyUpdate",
    "C_GenerateKey",
    "C_GenerateKeyPair",
    "C_WrapKey",
    "C_UnwrapKey",
    "C_DeriveKey",
    "C_SeedRandom",
    "C_GenerateRandom",
    "C_GetFunctionStatus",
    "C_CancelFunction",
    "C_WaitForSlotEvent",
    "C_GetInterfaceList",
    "C_GetInterface",
    "C_LoginUser",
    "C_SessionCancel",
    "C_MessageEncryptInit",
    "C_EncryptMessage",
    "C_EncryptMessageBegin",
    "C_EncryptMessageNext",
    "C_MessageEncryptFinal",
    "C_MessageDecryptInit",
    "C_DecryptMessage",
    "C_DecryptMessageBegin",
    "C_DecryptMessageNext",
    "C_MessageDecryptFinal",
    "C_MessageSignInit",
    "C_SignMessage",
    "C_SignMessageBegin",
    "C_SignMessageNext",
    "C_MessageSignFinal",
    "C_MessageVerifyInit",
    "C_VerifyMessage",
    "C_VerifyMessageBegin",
    "C_VerifyMessageNext",
    "C_MessageVerifyFinal",
    "C_EncapsulateKey",
    "C_DecapsulateKey",
    "C_VerifySignatureInit",
    "C_VerifySignature",
    "C_VerifySignatureUpdate",
    "C_VerifySignatureFinal",
    "C_GetSessionValidationFlags",
    "C_AsyncComplete",
    "C_AsyncGetID",
    "C_AsyncJoin",
    "C_WrapKeyAuthenticated",
    "C_UnwrapKeyAuthenticated",
];

const PCSC: [&str; 18] = [
    "SCardEstablishContext",
    "SCardReleaseContext",
    "SCardIsValidContext",
    "SCardConnect",
    "SCardReconnect",
    "SCardDisconnect",
    "SCardBeginTransaction",
    "SCardEndTransaction",
    "SCardStatus",
    "SCardGetStatusChange",
    "SCardControl",
    "SCardTransmit",
    "SCardListReaderGroups",
    "SCardListReaders",
    "SCardFreeMemory",
    "SCardCancel",
    "SCardGetAttrib",
    "SCardSetAttrib",
];

/// Interface of IFD handlers, MUSCLE PC/SC IFD Driver API 3.0. Without IFDHGetCapabilities, which
/// asks the driver and not the card.
const DRIVER: [&str; 7] = [
    "IFDHCreateChannelByName",
    "IFDHCreateChannel",
    "IFDHSetProtocolParameters",
    "IFDHPowerICC",
    "IFDHTransmitToICC",
    "IFDHControl",
    "IFDHICCPresence",
];

const LIBC: [(Kind, &str); 75] = [
    (Kind::Sleep, "sleep"),
    (Kind::Sleep, "usleep"),
    (Kind::Sleep, "nanosleep"),
    (Kind::Sleep, "clock_nanosleep"),
    (Kind::Poll, "poll"),
    (Kind::Poll, "__poll_chk"),
    (Kind::Poll, "ppoll"),
    (Kind::Poll, "select"),
    (Kind::Poll, "pselect"),
    (Kind::Poll, "epoll_wait"),
    (Kind::Poll, "accept"),
    (Kind::Poll, "accept4"),
    (Kind::Clock, "clock_gettime"),
    (Kind::Clock, "gettimeofday"),
    (Kind::Clock, "time"),
    (Kind::Open, "open"),
    (Kind::Open, "open64"),
    (Kind::Open, "openat"),
    (Kind::Open, "openat64"),
    (Kind::Open, "fopen"),
    (Kind::Open, "fopen64"),
    (Kind::Open, "opendir"),
    (Kind::Stat, "stat"),
    (Kind::Stat, "stat64"),
    (Kind::Stat, "lstat"),
    (Kind::Stat, "lstat64"),
    (Kind::Stat, "access"),
    (Kind::Close, "close"),
    (Kind::Read, "read"),
    (Kind::Read, "__read_chk"),
    (Kind::Read, "recv"),
    (Kind::Read, "__recv_chk"),
    (Kind::Read, "recvfrom"),
    (Kind::Read, "recvmsg"),
    (Kind::Write, "write"),
    (Kind::Write, "send"),
    (Kind::Write, "sendto"),
    (Kind::Write, "sendmsg"),
    (Kind::Connect, "connect"),
    (Kind::Lock, "pthread_mutex_lock"),
    (Kind::Lock, "pthread_cond_wait"),
    (Kind::Lock, "pthread_cond_timedwait"),
    (Kind::Lock, "pthread_rwlock_rdlock"),
    (Kind::Lock, "pthread_rwlock_wrlock"),
    (Kind::Lock, "pthread_join"),
    (Kind::Lock, "sem_wait"),
    (Kind::Lock, "sem_timedwait"),
    (Kind::Lock, "flock"),
    (Kind::Children, "wait"),
    (Kind::Children, "wait3"),
    (Kind::Children, "wait4"),
    (Kind::Children, "waitpid"),
    (Kind::Children, "waitid"),
    (Kind::Children, "system"),
    (Kind::Children, "pclose"),
    (Kind::LookupName, "getprotobyname"),
    (Kind::LookupNumber, "getprotobynumber"),
    (Kind::LookupName, "getservbyname"),
    (Kind::LookupNumber, "getservbyport"),
    (Kind::LookupName, "getpwnam"),
    (Kind::LookupNumber, "getpwuid"),
    (Kind::LookupName, "getgrnam"),
    (Kind::LookupNumber, "getgrgid"),
    (Kind::LookupName, "getprotobyname_r"),
    (Kind::LookupNumber, "getprotobynumber_r"),
    (Kind::LookupName, "getservbyname_r"),
    (Kind::LookupNumber, "getservbyport_r"),
    (Kind::LookupName, "getpwnam_r"),
    (Kind::LookupNumber, "getpwuid_r"),
    (Kind::LookupName, "getgrnam_r"),
    (Kind::LookupNumber, "getgrgid_r"),
    (Kind::LookupName, "getaddrinfo"),
    (Kind::LookupName, "gethostbyname"),
    (Kind::Close, "fclose"),
    (Kind::Close, "closedir"),
];
