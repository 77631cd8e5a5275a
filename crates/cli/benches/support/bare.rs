//! The loops that anyone would write first, over the null module.

use std::path::Path;
use std::sync::Barrier;
use std::thread;

use cryptoki_sys::*;
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;

/// The module, loaded and logged in to.
pub(crate) struct Bare {
    functions: CK_FUNCTION_LIST,
    _library: Pkcs11,
}

// SAFETY: a table of functions that the module offers to all threads.
unsafe impl Sync for Bare {}

impl Bare {
    pub(crate) fn load(module: &Path) -> Self {
        // SAFETY: the null module is a PKCS #11 module without side effects on loading.
        let library = unsafe { Pkcs11::new(module) }.expect("the null module loads");
        let mut table = std::ptr::null_mut();
        // SAFETY: `table` outlives the call.
        assert_eq!(unsafe { library.C_GetFunctionList(&mut table) }, CKR_OK);
        // SAFETY: CKR_OK: the table lives as long as the library.
        let functions = unsafe { *table };
        let initialize = functions.C_Initialize.expect("the table is full");
        // SAFETY: a null argument is allowed.
        assert_eq!(unsafe { initialize(std::ptr::null_mut()) }, CKR_OK);
        let bare = Self { functions, _library: library };
        let login = bare.functions.C_Login.expect("the table is full");
        let mut pin = *b"1234";
        // SAFETY: the PIN is four bytes long. The session stays open, and with it the login.
        assert_eq!(unsafe { login(bare.session(), CKU_USER, pin.as_mut_ptr(), 4) }, CKR_OK);
        bare
    }

    fn session(&self) -> CK_SESSION_HANDLE {
        let open = self.functions.C_OpenSession.expect("the table is full");
        let flags = CKF_SERIAL_SESSION | CKF_RW_SESSION;
        let mut session = CK_INVALID_HANDLE;
        // SAFETY: no callback; `session` outlives the call.
        assert_eq!(unsafe { open(0, flags, std::ptr::null_mut(), None, &mut session) }, CKR_OK);
        session
    }

    /// Nanoseconds for a signature, on average over so many threads at once, for so long.
    pub(crate) fn run(&self, threads: usize, time: Nanos) -> f64 {
        let barrier = Barrier::new(threads);
        let costs: Vec<f64> = thread::scope(|scope| {
            let thread = || {
                let session = self.session();
                let key = self.key(session);
                barrier.wait();
                self.spin(session, key, time)
            };
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(thread)).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
        });
        costs.iter().sum::<f64>() / costs.len() as f64
    }

    /// Nanoseconds for a signature, of so many, with two readings of the clock at each of its calls,
    /// which are kept.
    pub(crate) fn keep_each_call(&self, signatures: usize) -> f64 {
        let session = self.session();
        let key = self.key(session);
        let init = self.functions.C_SignInit.expect("the table is full");
        let sign = self.functions.C_Sign.expect("the table is full");
        let mut mechanism = bare_mechanism(CKM_RSA_PKCS);
        let mut data = [7; 32];
        let mut signature = [0; 256];
        let mut kept = Vec::with_capacity(2 * signatures);
        for _ in 0..signatures {
            let begin = Monotonic.now();
            // SAFETY: the mechanism outlives the call.
            let code = unsafe { init(session, &mut mechanism, key) };
            kept.push((begin, Monotonic.now(), code));
            let mut length = 256;
            let begin = Monotonic.now();
            // SAFETY: data and signature are as long as the lengths say.
            let code = unsafe {
                sign(session, data.as_mut_ptr(), 32, signature.as_mut_ptr(), &mut length)
            };
            kept.push((begin, Monotonic.now(), code));
        }
        let (first, last) = (kept[0].0, kept[kept.len() - 1].1);
        std::hint::black_box(kept);
        (last - first).0 as f64 / signatures as f64
    }

    fn key(&self, session: CK_SESSION_HANDLE) -> CK_OBJECT_HANDLE {
        let generate = self.functions.C_GenerateKeyPair.expect("the table is full");
        let mut mechanism = bare_mechanism(CKM_RSA_PKCS_KEY_PAIR_GEN);
        let mut bits: CK_ULONG = 2048;
        let mut template = [CK_ATTRIBUTE {
            type_: CKA_MODULUS_BITS,
            pValue: (&raw mut bits).cast(),
            ulValueLen: size_of::<CK_ULONG>() as CK_ULONG,
        }];
        let mut public = CK_INVALID_HANDLE;
        let mut private = CK_INVALID_HANDLE;
        // SAFETY: one public attribute, no private ones; all outlive the call.
        let code = unsafe {
            generate(
                session,
                &mut mechanism,
                template.as_mut_ptr(),
                1,
                std::ptr::null_mut(),
                0,
                &mut public,
                &mut private,
            )
        };
        assert_eq!(code, CKR_OK);
        private
    }

    fn spin(&self, session: CK_SESSION_HANDLE, key: CK_OBJECT_HANDLE, time: Nanos) -> f64 {
        let init = self.functions.C_SignInit.expect("the table is full");
        let sign = self.functions.C_Sign.expect("the table is full");
        let mut mechanism = bare_mechanism(CKM_RSA_PKCS);
        let mut data = [7; 51];
        let mut signature = [0; 256];
        let begin = Monotonic.now();
        let mut operations = 0u64;
        let mut sum = Nanos::ZERO;
        loop {
            let start = Monotonic.now();
            let mut length = 256;
            // SAFETY: data and signature are as long as the lengths say.
            unsafe {
                init(session, &mut mechanism, key);
                sign(session, data.as_mut_ptr(), 51, signature.as_mut_ptr(), &mut length);
            }
            let end = Monotonic.now();
            sum += end - start;
            operations += 1;
            if end - begin >= time {
                std::hint::black_box(sum);
                return (end - begin).0 as f64 / operations as f64;
            }
        }
    }
}

fn bare_mechanism(mechanism: CK_MECHANISM_TYPE) -> CK_MECHANISM {
    CK_MECHANISM { mechanism, pParameter: std::ptr::null_mut(), ulParameterLen: 0 }
}
