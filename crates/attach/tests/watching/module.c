/* A PKCS#11 module that a program leaves in all ways: C_Digest does nothing, C_Sign calls the
 * session's Notify (CKN_SURRENDER), which may throw, block or end the thread. With ATTACH_SPIN_NS in
 * the environment C_Digest works for so many nanoseconds. All else is refused.
 */
#include <stdlib.h>
#include <time.h>

#include "cryptoki.h"

#define FUNCTIONS 68
/* Places in CK_FUNCTION_LIST. */
enum {
    INITIALIZE = 0,
    GET_FUNCTION_LIST = 3,
    GET_SLOT_LIST = 4,
    OPEN_SESSION = 12,
    DIGEST_INIT = 37,
    DIGEST = 38,
    SIGN = 43,
};

static CK_RV (*notify)(CK_SESSION_HANDLE session, CK_ULONG event, void *application);
static struct list {
    CK_VERSION version;
    void *function[FUNCTIONS];
} list;

CK_RV C_GetFunctionList(void **to) {
    *to = &list;
    return 0;
}

static unsigned long spin_ns;

static CK_RV initialize(void *arguments) {
    const char *text = getenv("ATTACH_SPIN_NS");
    (void)arguments;
    spin_ns = text ? strtoul(text, NULL, 10) : 0;
    return 0;
}

static CK_RV get_slot_list(CK_BBOOL present, CK_SLOT_ID *slots, CK_ULONG *count) {
    (void)present;
    slots[0] = 0;
    *count = 1;
    return 0;
}

static CK_RV digest_init(void) {
    return 0;
}

static unsigned long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000UL + time.tv_nsec;
}

static CK_RV open_session(CK_SLOT_ID slot, CK_FLAGS flags, void *application, void *callback,
                          CK_SESSION_HANDLE *session) {
    (void)slot, (void)flags, (void)application;
    *(void **)&notify = callback;
    *session = 1;
    return 0;
}

/* Apart, so that digest has no push in front where the compiler optimises. */
__attribute__((noinline)) static void spin(void) {
    unsigned long end = now() + spin_ns;
    while (now() < end)
        ;
}

static CK_RV digest(void) {
    if (spin_ns)
        spin();
    return 0;
}

static CK_RV sign(CK_SESSION_HANDLE session) {
    return notify(session, 0, 0);
}

static CK_RV refuse(void) {
    return 0x54;
}

static struct list list = {{2, 40},
                           {[0 ... FUNCTIONS - 1] = refuse,
                            [INITIALIZE] = initialize,
                            [GET_FUNCTION_LIST] = C_GetFunctionList,
                            [GET_SLOT_LIST] = get_slot_list,
                            [DIGEST_INIT] = digest_init,
                            [OPEN_SESSION] = open_session,
                            [DIGEST] = digest,
                            [SIGN] = sign}};
