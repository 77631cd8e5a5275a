/* The loop that anyone would write first: one call of PC/SC again and again, between two readings
 * of CLOCK_MONOTONIC. Prints the nanoseconds of each, one a line, when all is over.
 *
 *   bare_pcsc OPERATION COUNT READER
 *
 * The library is opened here, so that nothing but a C compiler is needed to build this; types and
 * constants are those of pcsc-lite's winscard.h.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SCOPE_SYSTEM 2
#define SHARE_SHARED 2
#define PROTOCOL_ANY 3
#define LEAVE_CARD 0
#define E_TIMEOUT 0x8010000AUL
#define LONGEST_ATR 33

typedef struct {
    const char *reader;
    void *user_data;
    unsigned long current, event, atr_length;
    unsigned char atr[LONGEST_ATR];
} reader_state;

typedef struct {
    unsigned long protocol, length;
} io_request;

static long (*establish)(unsigned long, const void *, const void *, long *);
static long (*is_valid)(long);
static long (*connect_card)(long, const char *, unsigned long, unsigned long, long *,
                            unsigned long *);
static long (*begin)(long);
static long (*end)(long, unsigned long);
static long (*status)(long, char *, unsigned long *, unsigned long *, unsigned long *,
                      unsigned char *, unsigned long *);
static long (*status_change)(long, unsigned long, reader_state *, unsigned long);
static long (*transmit)(long, const io_request *, const unsigned char *, unsigned long,
                        io_request *, unsigned char *, unsigned long *);
static long (*disconnect)(long, unsigned long);
static long (*release)(long);

static long context, card;
static unsigned long protocol;
static const char *reader;

static void must(int well, const char *what) {
    if (!well) {
        fprintf(stderr, "bare_pcsc: %s failed\n", what);
        exit(2);
    }
}

static void *find(void *library, const char *name) {
    void *function = dlsym(library, name);
    must(function != NULL, name);
    return function;
}

static void open_library(void) {
    void *library = dlopen("libpcsclite.so.1", RTLD_NOW);
    must(library != NULL, "dlopen(libpcsclite.so.1)");
    *(void **)&establish = find(library, "SCardEstablishContext");
    *(void **)&is_valid = find(library, "SCardIsValidContext");
    *(void **)&connect_card = find(library, "SCardConnect");
    *(void **)&begin = find(library, "SCardBeginTransaction");
    *(void **)&end = find(library, "SCardEndTransaction");
    *(void **)&status = find(library, "SCardStatus");
    *(void **)&status_change = find(library, "SCardGetStatusChange");
    *(void **)&transmit = find(library, "SCardTransmit");
    *(void **)&disconnect = find(library, "SCardDisconnect");
    *(void **)&release = find(library, "SCardReleaseContext");
}

static long call_is_valid(void) { return is_valid(context); }

static long call_begin(void) { return begin(card); }

static long call_end(void) { return end(card, LEAVE_CARD); }

static long call_status(void) {
    char name[256];
    unsigned char atr[LONGEST_ATR];
    unsigned long length = sizeof name, state, active, atr_length = sizeof atr;
    return status(card, name, &length, &state, &active, atr, &atr_length);
}

static long call_status_change(void) {
    reader_state state;
    memset(&state, 0, sizeof state);
    state.reader = reader;
    unsigned long code = (unsigned long)status_change(context, 0, &state, 1);
    return (code & 0xFFFFFFFFUL) == E_TIMEOUT ? 0 : (long)code;
}

/* INS 00 is none of ISO 7816-4: every card refuses it. */
static long call_transmit(void) {
    static const unsigned char command[4];
    static unsigned char response[258];
    io_request request = {protocol, sizeof request};
    unsigned long length = sizeof response;
    return transmit(card, &request, command, sizeof command, NULL, response, &length);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static const struct operation {
    const char *name;
    int needs_card;
    long (*before)(void), (*timed)(void), (*after)(void);
} operations[] = {
    {"is_valid", 0, NULL, call_is_valid, NULL},
    {"get_status_unaware", 0, NULL, call_status_change, NULL},
    {"status", 1, NULL, call_status, NULL},
    {"begin_transaction", 1, NULL, call_begin, call_end},
    {"end_transaction", 1, call_begin, call_end, NULL},
    {"transmit", 1, NULL, call_transmit, NULL},
};

static void measure(const struct operation *operation, long count) {
    uint64_t *took = calloc((size_t)count, sizeof *took);
    must(took != NULL, "calloc");
    for (long i = 0; i < count; i++) {
        if (operation->before)
            must(operation->before() == 0, "the call before");
        uint64_t start = now();
        long code = operation->timed();
        took[i] = now() - start;
        must(code == 0, operation->name);
        if (operation->after)
            must(operation->after() == 0, "the call after");
    }
    for (long i = 0; i < count; i++)
        printf("%llu\n", (unsigned long long)took[i]);
    free(took);
}

int main(int argc, char **argv) {
    must(argc == 4, "arguments: OPERATION COUNT READER");
    const struct operation *operation = NULL;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (strcmp(operations[i].name, argv[1]) == 0)
            operation = &operations[i];
    must(operation != NULL, argv[1]);
    reader = argv[3];
    open_library();
    must(establish(SCOPE_SYSTEM, NULL, NULL, &context) == 0, "SCardEstablishContext");
    if (operation->needs_card) {
        long code = connect_card(context, reader, SHARE_SHARED, PROTOCOL_ANY, &card, &protocol);
        must(code == 0, "SCardConnect");
    }
    measure(operation, strtol(argv[2], NULL, 10));
    if (operation->needs_card)
        disconnect(card, LEAVE_CARD);
    release(context);
    return 0;
}
