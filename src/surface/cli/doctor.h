/* doctor.h - private to the command line: what doctor has found, and how it is printed. */
#ifndef PAWL_SURFACE_CLI_DOCTOR_H
#define PAWL_SURFACE_CLI_DOCTOR_H

#include "surface/cli/cli.h"

#define DOCTOR_FINDINGS_MAX 24

enum doctor_verdict { DOCTOR_GOOD, DOCTOR_WARN, DOCTOR_BAD };

struct doctor_finding {
    enum doctor_verdict verdict;
    const char *name;
    char words[400];
    char advice[512]; /* the next command to try, or what to do; "": nothing */
};

struct doctor {
    struct cli *cli;
    struct doctor_finding findings[DOCTOR_FINDINGS_MAX];
    uint32_t count;
    enum doctor_verdict worst;
    char advice[512];
};

/* One thing that was looked at. `advice` may be NULL. */
void doctor_say(struct doctor *doctor, enum doctor_verdict verdict, const char *name,
                const char *advice, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* For people, or as {healthy, checks: [{name, verdict, what, try}]}. */
void doctor_print(const struct doctor *doctor);

/* doctor --rebuild. The exit status. */
int doctor_rebuild(struct cli *cli);
/* doctor --accept-head. The exit status. */
int doctor_accept_head(struct cli *cli);
/* doctor --accept-clock, likewise. */
int doctor_accept_clock(struct cli *cli);

#endif
