/* other_user.c - a program that becomes its file's owner for good and waits: run by tool_exec.c with
 * the set-user-id bit. It writes its pid into the file that it is given, and ends by itself. */
#include <stdio.h>
#include <unistd.h>

#define LIFE_S 60

int main(int argc, char **argv)
{
    uid_t owner = geteuid();
    FILE *file = argc > 1 ? fopen(argv[1], "w") : NULL;

    if (!file || setresuid(owner, owner, owner) != 0)
        return 1;
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
    alarm(LIFE_S);
    pause();
    return 0;
}
