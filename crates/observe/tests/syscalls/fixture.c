/* What the tests of the system-call tracer observe: one mode a run, named by the first argument.
 * Each mode makes a number of calls that is known. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOT_INLINED __attribute__((noinline))

/* An address that is never mapped, unknown to the compiler. */
static int *volatile nowhere = (int *)8;

static char **arguments;

static long number(int place) { return strtol(arguments[place], NULL, 10); }

static void sleep_ms(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* `count` times open and close of a path that is there. */
NOT_INLINED void open_many(const char *path, long count) {
    for (long i = 0; i < count; i++) {
        int file = open(path, O_RDONLY);
        if (file < 0)
            exit(99);
        close(file);
    }
}

/* The published case in small: a lookup per packet, whose caller must come out by name. */
NOT_INLINED long look_up_protocol(int protocol) {
    setprotoent(0);
    struct protoent *entry = getprotobynumber(protocol);
    endprotoent();
    return entry ? (long)strlen(entry->p_name) : 0;
}

/* opens COUNT PATH */
static int opens(void) {
    open_many(arguments[3], number(2));
    return 0;
}

static void *thread_opens(void *nothing) {
    (void)nothing;
    open_many(arguments[4], number(3));
    return NULL;
}

/* threads THREADS COUNT PATH */
static int threads(void) {
    pthread_t started[64];
    long count = number(2);
    for (long i = 0; i < count; i++)
        pthread_create(&started[i], NULL, thread_opens, NULL);
    for (long i = 0; i < count; i++)
        pthread_join(started[i], NULL);
    return 0;
}

static void become_by_fork(char **then) {
    if (fork() == 0) {
        execv(then[0], then);
        _exit(98);
    }
}

static void become_by_vfork(char **then) {
    if (vfork() == 0) {
        execv(then[0], then);
        _exit(98);
    }
}

/* processes PROCESSES COUNT PATH: forks that become `opens`, every other by vfork. */
static int processes(void) {
    char *then[] = {arguments[0], "opens", arguments[3], arguments[4], NULL};
    for (long i = 0; i < number(2); i++)
        i % 2 ? become_by_vfork(then) : become_by_fork(then);
    int status, wrong = 0;
    while (wait(&status) > 0)
        wrong += status != 0;
    return wrong;
}

/* forks PROCESSES COUNT PATH: without exec */
static int forks(void) {
    for (long i = 0; i < number(2); i++)
        if (fork() == 0) {
            open_many(arguments[4], number(3));
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    return 0;
}

/* crash COUNT PATH */
static int crash(void) {
    open_many(arguments[3], number(2));
    *nowhere = 1;
    return 0;
}

static void *thread_crashes(void *nothing) {
    (void)nothing;
    sleep_ms(20);
    *nowhere = 1;
    return NULL;
}

/* crash-in-sleep: the first thread sleeps while another crashes */
static int crash_in_sleep(void) {
    pthread_t started;
    pthread_create(&started, NULL, thread_crashes, NULL);
    sleep_ms(60000);
    return 0;
}

/* exit CODE TEXT */
static int exit_with(void) {
    printf("%s\n", arguments[3]);
    fprintf(stderr, "and an error\n");
    return (int)number(2);
}

static void *thread_sleeps(void *nothing) {
    (void)nothing;
    sleep_ms(60000);
    return NULL;
}

static void *thread_sleeps_and_says_who(void *id) {
    *(_Atomic pid_t *)id = gettid();
    return thread_sleeps(NULL);
}

static int is_asleep(pid_t thread) {
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *stat = fopen(path, "r");
    if (stat == NULL)
        return 0;
    int read = fscanf(stat, "%*d (%*[^)]) %c", &state);
    fclose(stat);
    return read == 1 && state == 'S';
}

/* exit-early: leaves while threads sleep */
static int exit_early(void) {
    static _Atomic pid_t threads[4];
    pthread_t started;
    for (int i = 0; i < 4; i++)
        pthread_create(&started, NULL, thread_sleeps_and_says_who, &threads[i]);
    for (int i = 0; i < 4; i++)
        while (threads[i] == 0 || !is_asleep(threads[i]))
            sleep_ms(1);
    _exit(5);
}

static void *thread_executes(void *nothing) {
    (void)nothing;
    char *then[] = {arguments[0], "opens", arguments[2], arguments[3], NULL};
    execv(then[0], then);
    return NULL;
}

/* exec-from-thread COUNT PATH: another than the first thread becomes `opens` */
static int exec_from_thread(void) {
    pthread_t started;
    pthread_create(&started, NULL, thread_sleeps, NULL);
    sleep_ms(10);
    pthread_create(&started, NULL, thread_executes, NULL);
    sleep_ms(60000);
    return 97;
}

/* daemon MS COUNT PATH: the program ends, and a child of its goes on */
static int daemonise(void) {
    if (fork() == 0) {
        setsid();
        sleep_ms(number(2));
        open_many(arguments[4], number(3));
        _exit(0);
    }
    return 0;
}

/* left-behind MS: a child says that the program has ended, and goes on */
static int left_behind(void) {
    pid_t program = getpid();
    if (fork() == 0) {
        setsid();
        while (getppid() == program)
            usleep(1000);
        if (write(1, "ready\n", 6) == 6)
            sleep_ms(number(2));
        _exit(0);
    }
    return 0;
}

/* protocols COUNT */
static int protocols(void) {
    long sum = 0;
    for (long i = 0; i < number(2); i++)
        sum += look_up_protocol(17);
    return sum == 3 * number(2) ? 0 : 96;
}

/* sleep MS */
static int sleep_once(void) {
    sleep_ms(number(2));
    return 0;
}

static void do_nothing(int signal) { (void)signal; }

static void child_ends_soon(void) {
    if (fork() == 0) {
        sleep_ms(200);
        _exit(0);
    }
}

/* interrupted HANDLED: a child ends while this process waits; with a handler or without */
static int interrupted(void) {
    if (number(2)) {
        struct sigaction action = {.sa_handler = do_nothing};
        sigaction(SIGCHLD, &action, NULL);
    }
    /* Without a handler a wait goes on to its end, which must come after that of the child. With
     * one it ends with the child, however long that takes. */
    const int ms = number(2) ? 60000 : 600;
    child_ends_soon();
    int ready = poll(NULL, 0, ms);
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    child_ends_soon();
    int slept = clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
    printf("%d %d\n", ready, slept);
    return 0;
}

static volatile sig_atomic_t heard;
static void hear(int signal) { heard += signal; }

/* signals: ordinary and real-time ones reach their handlers */
static int signals(void) {
    struct sigaction action = {.sa_handler = hear};
    int all[] = {SIGUSR1, SIGALRM, SIGTRAP, SIGRTMIN, SIGRTMAX};
    for (int i = 0; i < 5; i++) {
        sigaction(all[i], &action, NULL);
        raise(all[i]);
        heard -= all[i];
    }
    return heard;
}

/* stopped COUNT PATH: a child stops itself and is continued */
static int stopped(void) {
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        open_many(arguments[3], number(2));
        _exit(4);
    }
    int status;
    waitpid(child, &status, WUNTRACED);
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP)
        return 95;
    kill(child, SIGCONT);
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

static volatile sig_atomic_t interrupts, ends;
static void count_signals(int signal) { signal == SIGINT ? interrupts++ : ends++; }

/* wait-for-signals MS [COUNT]: 10 for each SIGINT and 1 for each SIGTERM; with COUNT so long only
 * until there were so many, and 50 ms more for any that should not come */
static int wait_for_signals(void) {
    struct sigaction action = {.sa_handler = count_signals};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (write(1, "ready\n", 6) != 6)
        return 91;
    const int waits = arguments[3] == NULL;
    for (long i = 0; i < number(2) / 10 && (waits || interrupts + ends < number(3)); i++)
        sleep_ms(10);
    sleep_ms(waits ? 0 : 50);
    return 10 * interrupts + ends;
}

static int processors_of(pid_t thread) {
    cpu_set_t set;
    return sched_getaffinity(thread, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

/* How often it finds the first thread or itself elsewhere than that was at first. */
static void *thread_asks(void *at_first) {
    long elsewhere = 0;
    for (int i = 0; i < 100; i++) {
        elsewhere += processors_of(getpid()) != *(int *)at_first;
        elsewhere += processors_of(0) != *(int *)at_first;
        sleep_ms(1);
    }
    return (void *)elsewhere;
}

/* processors PATH: how many it may run on, alone, asked by a second thread while the first makes
 * calls in a row, and as a child of its own */
static int processors(void) {
    pthread_t asks;
    void *elsewhere;
    int at_first = processors_of(0);
    pthread_create(&asks, NULL, thread_asks, &at_first);
    while (pthread_tryjoin_np(asks, &elsewhere) != 0)
        open_many(arguments[2], 20);
    printf("%d %ld %d ", at_first, (long)elsewhere, processors_of(0));
    fflush(stdout);
    return system("nproc");
}

/* On how many processors the calling thread really may run. */
static int place_of_thread(void) {
    char line[256];
    int count = 0;
    FILE *status = fopen("/proc/thread-self/status", "r");
    while (fgets(line, sizeof line, status)) {
        if (strncmp(line, "Cpus_allowed:", 13) != 0)
            continue;
        for (char *at = line + 13; *at; at++) {
            char digit[2] = {*at, 0};
            count += __builtin_popcountl(strtoul(digit, NULL, 16));
        }
    }
    fclose(status);
    return count;
}

static void *thread_has_a_place(void *count) {
    sleep_ms(50);
    *(int *)count = place_of_thread();
    return NULL;
}

/* places PATH: on how many processors a thread may run that makes calls in a row, and on how many
 * another one that sleeps meanwhile */
static int places(void) {
    pthread_t sleeper;
    int of_sleeper = 0;
    open_many(arguments[2], 20);
    pthread_create(&sleeper, NULL, thread_has_a_place, &of_sleeper);
    open_many(arguments[2], 20);
    printf("%d ", place_of_thread());
    pthread_join(sleeper, NULL);
    printf("%d\n", of_sleeper);
    return 0;
}

static void *thread_executes_places(void *nothing) {
    (void)nothing;
    char *then[] = {arguments[0], "places", arguments[2], NULL};
    execv(then[0], then);
    return NULL;
}

/* places-after-exec PATH: the first thread makes calls in a row, and another becomes `places` */
static int places_after_exec(void) {
    pthread_t started;
    open_many(arguments[2], 20);
    pthread_create(&started, NULL, thread_executes_places, NULL);
    pthread_join(started, NULL);
    return 98;
}

/* by-gate: a system call of 32 bits in a program of 64 */
static int by_gate(void) {
    long process;
    __asm__ volatile("int $0x80" : "=a"(process) : "a"(20) : "memory");
    return process == getpid() ? 0 : 93;
}

/* connect PATH: to a socket where nobody listens, then a datagram to itself */
static int connect_to(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, arguments[2]);
    int one = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (bind(one, (struct sockaddr *)&address, sizeof address) != 0)
        return 92;
    int two = socket(AF_UNIX, SOCK_DGRAM, 0);
    connect(two, (struct sockaddr *)&address, sizeof address);
    send(two, "x", 1, 0);
    char byte;
    recv(one, &byte, 1, 0);
    return 0;
}

int main(int count, char **values) {
    arguments = values;
    struct {
        const char *name;
        int (*run)(void);
    } modes[] = {
        {"opens", opens},
        {"threads", threads},
        {"processes", processes},
        {"forks", forks},
        {"crash", crash},
        {"crash-in-sleep", crash_in_sleep},
        {"exit", exit_with},
        {"exit-early", exit_early},
        {"exec-from-thread", exec_from_thread},
        {"daemon", daemonise},
        {"left-behind", left_behind},
        {"protocols", protocols},
        {"sleep", sleep_once},
        {"interrupted", interrupted},
        {"signals", signals},
        {"stopped", stopped},
        {"wait-for-signals", wait_for_signals},
        {"processors", processors},
        {"places", places},
        {"places-after-exec", places_after_exec},
        {"by-gate", by_gate},
        {"connect", connect_to},
    };
    for (size_t i = 0; count > 1 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(values[1], modes[i].name) == 0)
            return modes[i].run();
    return 90;
}
