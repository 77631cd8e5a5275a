// A program that ends, or leaves calls, in other ways than by a return: ends MODULE WHAT.
//
// With -DUNCANCELLED it knows no `cancel`, and imports no pthread_cancel.
//
// It loads the module, prints "ready", and waits for a line. Then it calls C_Digest 50 times, does
// what is asked, and prints how that went:
//   work    calls it 50 times more
//   reload  unloads the module, loads it again, and calls it 50 times more
//   exec    executes itself to `work`, so that it is ready a second time
//   crash   is killed by a signal
//   throw   an exception leaves C_Sign 20 times: how many were caught, and how many objects in its way
//           were destroyed
//   cancel  a thread is cancelled in C_Sign: how many of its clean-up handlers ran
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

typedef unsigned long (*Call)(unsigned long session);

static struct List {
    void *version;
    void *function[68];
} *module;
static void *library;
static int cleaned;

static Call at(int place) {
    return (Call)module->function[place];
}

static void load(const char *path) {
    unsigned long (*get)(List **);
    library = dlopen(path, RTLD_NOW);
    if (!library)
        std::exit(2);
    *(void **)&get = dlsym(library, "C_GetFunctionList");
    get(&module);
}

static void digest() {
    for (int i = 0; i < 50; i++)
        at(38)(1);
}

static unsigned long refuse(unsigned long, unsigned long, void *) {
    throw 1;
}

static void open_session(void *notify) {
    unsigned long session;
    auto open = (unsigned long (*)(unsigned long, unsigned long, void *, void *, unsigned long *))at(12);
    open(0, 4, nullptr, notify, &session);
}

struct Object {
    ~Object() { cleaned++; }
};

static void sign() {
    Object object;
    at(43)(1);
}

#ifndef UNCANCELLED
static unsigned long block(unsigned long, unsigned long, void *) {
    for (;;)
        pause();
}

static void clean(void *) {
    cleaned++;
}

static void *blocked(void *) {
    pthread_cleanup_push(clean, nullptr);
    at(43)(1);
    pthread_cleanup_pop(0);
    return nullptr;
}

static int is_cancelled() {
    pthread_t thread;
    struct timespec time = {0, 100000000};
    open_session((void *)block);
    pthread_create(&thread, nullptr, blocked, nullptr);
    nanosleep(&time, nullptr);
    pthread_cancel(thread);
    pthread_join(thread, nullptr);
    return std::printf("%d\n", cleaned);
}
#endif

static int throws() {
    int caught = 0;
    open_session((void *)refuse);
    for (int i = 0; i < 20; i++) {
        try {
            sign();
        } catch (int) {
            caught++;
        }
    }
    return std::printf("%d %d\n", caught, cleaned);
}

static void crashes() {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    std::raise(SIGSEGV);
}

int main(int count, char **words) {
    char line[16];
    if (count != 3)
        return 2;
    const char *what = words[2];
    load(words[1]);
    std::puts("ready");
    std::fflush(stdout);
    // Not through a buffer, which what is executed would not get.
    if (read(0, line, 3) != 3)
        return 2;
    digest();
    if (!std::strcmp(what, "throw"))
        return throws() < 0;
#ifndef UNCANCELLED
    if (!std::strcmp(what, "cancel"))
        return is_cancelled() < 0;
#endif
    if (!std::strcmp(what, "crash"))
        crashes();
    if (!std::strcmp(what, "exec"))
        execl("/proc/self/exe", words[0], words[1], "work", nullptr);
    if (!std::strcmp(what, "reload")) {
        dlclose(library);
        load(words[1]);
    }
    digest();
    std::puts("done");
    return 0;
}
