/* A program that calls C_Digest (which is refused) without a break, and notes the longest time from
 * one end of a call to the next: pauses MODULE.
 *
 * It prints "ready". For each line that it reads it prints the longest pause since the last one, in
 * nanoseconds.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "cryptoki.h"

static CK_FUNCTION_LIST *module;
static atomic_ulong longest;

static unsigned long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000UL + time.tv_nsec;
}

static void *work(void *nothing) {
    CK_BYTE message[16] = {0}, digest[64];
    unsigned long before = now();
    for (;;) {
        CK_ULONG length = sizeof digest;
        module->C_Digest(0, message, sizeof message, digest, &length);
        unsigned long moment = now(), pause = moment - before;
        before = moment;
        if (pause > atomic_load_explicit(&longest, memory_order_relaxed))
            atomic_store(&longest, pause);
    }
    return nothing;
}

int main(int count, char **words) {
    CK_RV (*get)(CK_FUNCTION_LIST **);
    void *library = count == 2 ? dlopen(words[1], RTLD_NOW) : NULL;
    if (!library)
        return 2;
    *(void **)&get = dlsym(library, "C_GetFunctionList");
    get(&module);
    module->C_Initialize(NULL);
    pthread_t worker;
    pthread_create(&worker, NULL, work, NULL);
    puts("ready");
    fflush(stdout);
    char line[16];
    while (fgets(line, sizeof line, stdin)) {
        printf("%lu\n", atomic_exchange(&longest, 0));
        fflush(stdout);
    }
    return 0;
}
