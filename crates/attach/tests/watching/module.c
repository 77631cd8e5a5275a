/* A PKCS#11 module that a program leaves in all ways: C_Digest does nothing, C_Sign calls the
 * session's Notify (CKN_SURRENDER), which may throw, block or end the thread. All else is refused.
 */
#include "cryptoki.h"

#define FUNCTIONS 68
/* Places in CK_FUNCTION_LIST. */
enum { INITIALIZE = 0, GET_FUNCTION_LIST = 3, OPEN_SESSION = 12, DIGEST = 38, SIGN = 43 };

static CK_RV (*notify)(CK_SESSION_HANDLE session, CK_ULONG event, void *application);
static struct list {
    CK_VERSION version;
    void *function[FUNCTIONS];
} list;

CK_RV C_GetFunctionList(void **to) {
    *to = &list;
    return 0;
}

static CK_RV initialize(void *arguments) {
    (void)arguments;
    return 0;
}

static CK_RV open_session(CK_SLOT_ID slot, CK_FLAGS flags, void *application, void *callback,
                          CK_SESSION_HANDLE *session) {
    (void)slot, (void)flags, (void)application;
    *(void **)&notify = callback;
    *session = 1;
    return 0;
}

static CK_RV digest(void) {
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
                            [OPEN_SESSION] = open_session,
                            [DIGEST] = digest,
                            [SIGN] = sign}};
