/* process.c - pawl and this program as other processes: started, watched, loaded, killed. */
#include "bench.h"
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONNECTIONS_MAX 64

/* Start `words` with its output in a pipe; the end of it that can be read. */
pid_t child_start(char *const *words, int *output)
{
    int ends[2];
    pid_t pid;

    if (pipe(ends) != 0)
        die("pipe: %s", strerror(errno));
    pid = fork();
    if (pid < 0)
        die("fork: %s", strerror(errno));
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execv(words[0], words);
        _exit(127);
    }
    close(ends[1]);
    *output = ends[0];
    return pid;
}

/* The first line that a child prints. */
void child_line(int output, char *line, size_t size)
{
    size_t used = 0;

    while (used + 1 < size && read(output, line + used, 1) == 1 && line[used] != '\n')
        used++;
    line[used] = '\0';
}

void child_end(pid_t pid, int signal_number)
{
    if (signal_number)
        kill(pid, signal_number);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

void server_start(const struct bench *bench, const char *name, struct server *out)
{
    char path[PATH_SIZE], url[PATH_SIZE + 8];

    path_in(bench, name, path);
    snprintf(url, sizeof url, "sqlite:%s", path);
    server_start_over(bench, url, out);
}

void server_start_over(const struct bench *bench, char *url, struct server *out)
{
    char program[PATH_SIZE], line[PATH_SIZE + 128] = "";
    char store[] = "--store", serve[] = "serve", listen[] = "--listen", any[] = "127.0.0.1:0";
    char *words[] = { program, store, url, serve, listen, any, NULL };
    const char *colon;
    double begin = now_s();

    memcpy(program, bench->program, sizeof program);
    out->pid = child_start(words, &out->output);
    child_line(out->output, line, sizeof line);
    out->ready_ms = (now_s() - begin) * 1e3;
    colon = strstr(line, "http://127.0.0.1:");
    out->port = colon ? atoi(colon + strlen("http://127.0.0.1:")) : 0;
    if (!out->port)
        die("%s serve says '%s'", bench->program, line);
}

void server_stop(struct server *server)
{
    child_end(server->pid, SIGTERM);
    close(server->output);
}

double resident_mib(pid_t pid)
{
    char path[64], line[256];
    double kib = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = strtod(line + 6, NULL);
    if (file)
        fclose(file);
    return kib / 1024;
}

/* ---- Load over HTTP ---- */

struct load {
    int port;
    const struct crowd *crowd;
    double until;
    uint64_t seed;
    size_t fires;
};

static int connect_to(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("connect: %s", strerror(errno));
    return fd;
}

/* Read one answer: its head, and as many bytes after it as that says. */
static bool read_answer(int fd)
{
    char text[4096];
    size_t used = 0, wanted = SIZE_MAX;
    ssize_t size;

    while (used < wanted && used + 1 < sizeof text &&
           (size = recv(fd, text + used, sizeof text - 1 - used, 0)) > 0) {
        const char *end, *length;

        used += (size_t)size;
        text[used] = '\0';
        end = strstr(text, "\r\n\r\n");
        length = strcasestr(text, "content-length:");
        if (end && length)
            wanted = (size_t)(end + 4 - text) + strtoul(length + 15, NULL, 10);
    }
    return used == wanted && strncmp(text, "HTTP/1.1 200", 12) == 0;
}

static void *fire_over_http(void *context)
{
    static const char body[] = "{\"action\":\"turn\",\"actor_ref\":\"" ACTOR "\"}";
    struct load *load = context;
    int fd = connect_to(load->port);
    char text[512];

    while (now_s() < load->until) {
        const char *id = load->crowd->ids[random_next(&load->seed) % load->crowd->count].text;
        int size = snprintf(text, sizeof text,
                            "POST /v1/instances/%s/fire HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                            "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                            id, load->port, sizeof body - 1, body);

        if (send(fd, text, (size_t)size, 0) != size || !read_answer(fd))
            die("a fire over HTTP was not answered with 200");
        load->fires++;
    }
    close(fd);
    return NULL;
}

double server_load(struct server *server, const struct crowd *crowd, int connections,
                   double seconds, double *resident_max)
{
    struct load loads[CONNECTIONS_MAX];
    pthread_t threads[CONNECTIONS_MAX];
    double until = now_s() + seconds, sum = 0;

    for (int i = 0; i < connections; i++) {
        loads[i] = (struct load){ server->port, crowd, until, (uint64_t)i, 0 };
        if (pthread_create(&threads[i], NULL, fire_over_http, &loads[i]) != 0)
            die("no thread");
    }
    for (*resident_max = 0; now_s() < until; rest_ms(50)) {
        double resident = resident_mib(server->pid);

        *resident_max = resident > *resident_max ? resident : *resident_max;
    }
    for (int i = 0; i < connections; i++) {
        pthread_join(threads[i], NULL);
        sum += (double)loads[i].fires;
    }
    return sum / seconds;
}
