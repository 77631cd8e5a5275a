/* A program whose calls a module refuses at once, whatever token there is: refused MODULE CALLS.
 *
 * It prints "ready", and waits for a line. Then it calls each function below CALLS times with a
 * session that nobody has opened, and prints a line each: its name, the last CK_RV, and the median of
 * its times in nanoseconds. It waits for another line before it ends.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cryptoki.h"

#define NOBODY 0x7EADBEEF

/* Places in CK_FUNCTION_LIST. */
static const struct {
    int place;
    const char *name;
} functions[] = {
    {15, "C_GetSessionInfo"}, {24, "C_GetAttributeValue"}, {26, "C_FindObjectsInit"},
    {27, "C_FindObjects"},    {28, "C_FindObjectsFinal"},  {29, "C_EncryptInit"},
    {30, "C_Encrypt"},        {33, "C_DecryptInit"},       {34, "C_Decrypt"},
    {37, "C_DigestInit"},     {38, "C_Digest"},            {42, "C_SignInit"},
    {43, "C_Sign"},           {48, "C_VerifyInit"},        {64, "C_GenerateRandom"},
};

/* As many arguments as any of them takes. */
typedef CK_RV function(CK_SESSION_HANDLE, void *, CK_ULONG, void *, CK_ULONG *);

static unsigned *times;
static unsigned long calls;

static unsigned long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000UL + time.tv_nsec;
}

static int by_time(const void *one, const void *other) {
    unsigned a = *(const unsigned *)one, b = *(const unsigned *)other;
    return (a > b) - (a < b);
}

static void call(function *called, const char *name) {
    CK_RV result = 0;
    for (unsigned long n = 0; n < calls; n++) {
        unsigned long start = now();
        result = called(NOBODY, NULL, 0, NULL, NULL);
        times[n] = now() - start;
    }
    qsort(times, calls, sizeof *times, by_time);
    printf("%s %lu %u\n", name, result, times[calls / 2]);
}

int main(int count, char **words) {
    CK_RV (*get)(CK_FUNCTION_LIST **);
    CK_FUNCTION_LIST *module;
    char line[16];
    void *library = count == 3 ? dlopen(words[1], RTLD_NOW) : NULL;
    if (!library)
        return 2;
    calls = strtoul(words[2], NULL, 10);
    times = calloc(calls, sizeof *times);
    *(void **)&get = dlsym(library, "C_GetFunctionList");
    get(&module);
    /* Where it fails, for want of a daemon, calls are refused for another reason. */
    module->C_Initialize(NULL);
    puts("ready");
    fflush(stdout);
    fgets(line, sizeof line, stdin);
    for (size_t n = 0; n < sizeof functions / sizeof *functions; n++) {
        function *called;
        /* The list begins with the version, in as many bytes as a pointer has. */
        *(void **)&called = ((void **)module)[1 + functions[n].place];
        call(called, functions[n].name);
    }
    puts("done");
    fflush(stdout);
    fgets(line, sizeof line, stdin);
    return 0;
}
