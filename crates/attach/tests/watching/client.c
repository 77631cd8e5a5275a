/* A program that others watch while it works: client MODULE THREADS ROUNDS [PAUSE_US [CHILDREN]].
 *
 * It prints "ready", and waits for a line; without rounds it has only loaded the module then. Then
 * each thread (and each thread of each child) opens a session and does ROUNDS times C_DigestInit and
 * C_Digest, and each tenth time C_Digest alone, which fails. It prints how often each function
 * returned what, its own sum of the times of C_Digest, and their median (of the first ROUNDS), and
 * waits for another line before it ends.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cryptoki.h"

static CK_FUNCTION_LIST *module;
static CK_SLOT_ID slots[16];
static unsigned long rounds, pause_us;
static struct {
    unsigned long begun, well, refused, other, nanos;
} *counted;
/* Times of C_Digest, of the first ROUNDS, in nanoseconds. */
static unsigned *times;
static unsigned long timed;

static unsigned long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000UL + time.tv_nsec;
}

static void digest(CK_SESSION_HANDLE session)
{
    CK_BYTE message[64] = {0}, digest[64];
    CK_ULONG length = sizeof digest;
    unsigned long start = now();
    CK_RV result = module->C_Digest(session, message, sizeof message, digest, &length);
    unsigned long time = now() - start;
    __atomic_fetch_add(&counted->nanos, time, __ATOMIC_RELAXED);
    unsigned long place = __atomic_fetch_add(&timed, 1, __ATOMIC_RELAXED);
    if (place < rounds)
        times[place] = time;
    unsigned long *count = result == CKR_OK ? &counted->well
                           : result == 0x91 ? &counted->refused
                                            : &counted->other;
    __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

static void *work(void *nothing)
{
    CK_SESSION_HANDLE session;
    CK_MECHANISM mechanism = {CKM_SHA256, NULL, 0};
    if (module->C_OpenSession(slots[0], CKF_SERIAL_SESSION, NULL, NULL, &session) != CKR_OK)
        exit(1);
    for (unsigned long round = 0; round < rounds; round++) {
        if (module->C_DigestInit(session, &mechanism) == CKR_OK)
            __atomic_fetch_add(&counted->begun, 1, __ATOMIC_RELAXED);
        digest(session);
        if (round % 10 == 9)
            digest(session);
        if (pause_us)
            usleep(pause_us);
    }
    return nothing;
}

static void work_in_threads(int threads)
{
    pthread_t ids[64];
    for (int n = 0; n < threads; n++)
        pthread_create(&ids[n], NULL, work, NULL);
    for (int n = 0; n < threads; n++)
        pthread_join(ids[n], NULL);
}

static int by_time(const void *one, const void *other)
{
    unsigned a = *(const unsigned *)one, b = *(const unsigned *)other;
    return (a > b) - (a < b);
}

static unsigned median(void)
{
    unsigned long known = timed < rounds ? timed : rounds;
    qsort(times, known, sizeof *times, by_time);
    return known ? times[known / 2] : 0;
}

int main(int count, char **words)
{
    if (count < 4)
        return 2;
    int threads = atoi(words[2]);
    rounds = strtoul(words[3], NULL, 10);
    pause_us = count > 4 ? strtoul(words[4], NULL, 10) : 0;
    int children = count > 5 ? atoi(words[5]) : 0;
    times = calloc(rounds + 1, sizeof *times);
    counted = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void *library = dlopen(words[1], RTLD_NOW);
    CK_RV (*get)(CK_FUNCTION_LIST **) = library ? dlsym(library, "C_GetFunctionList") : NULL;
    CK_C_INITIALIZE_ARGS arguments = {.flags = CKF_OS_LOCKING_OK};
    CK_ULONG count_of_slots = 16;
    if (!get || get(&module))
        return 1;
    if (rounds && (module->C_Initialize(&arguments) || module->C_GetSlotList(1, slots, &count_of_slots)))
        return 1;
    char line[16];
    puts("ready");
    fflush(stdout);
    fgets(line, sizeof line, stdin);
    for (int n = 0; n < children; n++) {
        if (fork() == 0) {
            module->C_Initialize(&arguments);
            work_in_threads(threads);
            _exit(0);
        }
    }
    if (rounds)
        work_in_threads(threads);
    while (wait(NULL) > 0)
        ;
    printf("%lu %lu %lu %lu %lu %u\n", counted->begun, counted->well, counted->refused, counted->other,
           counted->nanos, median());
    fflush(stdout);
    fgets(line, sizeof line, stdin);
    return 0;
}
