//! What the measuring loop costs: `tapstone token`'s own workers against a bare loop with two clock
//! readings, over the same module, in interleaved rounds of one run.
//!
//! The module answers at once, so everything that is left is the loop. `cargo bench` runs all
//! rounds; without `--bench` a few show that it works.

mod support;

use std::path::Path;
use std::sync::Barrier;
use std::thread;

use cryptoki_sys::*;
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;
use tapstone_token::controller::TokenController;

use support::OPERATION;

const ROUND: Nanos = Nanos::from_millis(300);

fn main() {
    let rounds = support::rounds(21, 2);
    let module = support::module();
    let mut controller = support::open(&module, &[]);
    let bare = Bare::load(&module);
    let mut costs: Vec<(&str, usize, Vec<f64>)> = Vec::new();
    for round in 0..rounds {
        let mut order: Vec<(&str, usize)> =
            vec![("bare", 1), ("controller", 1), ("bare", 2), ("controller", 2)];
        if round % 2 == 1 {
            order.reverse();
        }
        for (who, threads) in order {
            let cost = match who {
                "bare" => bare.run(threads),
                _ => measured(&mut controller, threads),
            };
            match costs.iter_mut().find(|(name, count, _)| (*name, *count) == (who, threads)) {
                Some((.., all)) => all.push(cost),
                None => costs.push((who, threads, vec![cost])),
            }
        }
    }
    controller.close();
    report(costs, rounds);
}

fn report(mut costs: Vec<(&str, usize, Vec<f64>)>, rounds: usize) {
    let mut median = |who: &str, threads: usize| {
        let found = costs.iter_mut().find(|(name, count, _)| (*name, *count) == (who, threads));
        let (.., all) = found.expect("every pair was measured");
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let bare = median("bare", 1);
    let controller = median("controller", 1);
    let bare_two = median("bare", 2);
    let lab_two = median("controller", 2);
    println!("{OPERATION} on a module that answers at once, ns per operation and thread,");
    println!("medians of {rounds} interleaved rounds of {ROUND}\n");
    println!("                              1 thread    2 threads   change");
    println!("  bare loop, two readings    {bare:9.1}    {bare_two:9.1}   {:6.3}", bare_two / bare);
    println!(
        "  tapstone's loop            {controller:9.1}    {lab_two:9.1}   {:6.3}",
        lab_two / controller
    );
    println!(
        "  ratio                      {:9.3}    {:9.3}",
        controller / bare,
        lab_two / bare_two
    );
    println!(
        "  change over the bare loop's own change: {:.3}",
        lab_two / controller / (bare_two / bare)
    );
}

/// ns per operation and thread, from the rate: everything that the loop does is in it.
fn measured(controller: &mut TokenController, threads: usize) -> f64 {
    let summary = support::measure(controller, threads as u32, ROUND);
    1e9 * threads as f64 / summary.rate.estimate
}

/// The loop that anyone would write first.
struct Bare {
    functions: CK_FUNCTION_LIST,
    _library: Pkcs11,
}

// SAFETY: a table of functions that the module offers to all threads.
unsafe impl Sync for Bare {}

impl Bare {
    fn load(module: &Path) -> Self {
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

    fn run(&self, threads: usize) -> f64 {
        let barrier = Barrier::new(threads);
        let costs: Vec<f64> = thread::scope(|scope| {
            let thread = || {
                let session = self.session();
                let key = self.key(session);
                barrier.wait();
                self.spin(session, key)
            };
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(thread)).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
        });
        costs.iter().sum::<f64>() / costs.len() as f64
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

    fn spin(&self, session: CK_SESSION_HANDLE, key: CK_OBJECT_HANDLE) -> f64 {
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
            if end - begin >= ROUND {
                std::hint::black_box(sum);
                return (end - begin).0 as f64 / operations as f64;
            }
        }
    }
}

fn bare_mechanism(mechanism: CK_MECHANISM_TYPE) -> CK_MECHANISM {
    CK_MECHANISM { mechanism, pParameter: std::ptr::null_mut(), ulParameterLen: 0 }
}
