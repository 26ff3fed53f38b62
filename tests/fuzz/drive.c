/* drive.c - runs a fuzz target over files named on the command line, without libFuzzer. */
#include "fuzz.h"

static void run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data, *exact;
    size_t size;

    REQUIRE(file);
    data = malloc(LIMIT_TEXT);
    REQUIRE(data);
    size = fread(data, 1, LIMIT_TEXT, file);
    fclose(file);
    exact = malloc(size ? size : 1); /* so that a sanitizer sees a read past the end */
    REQUIRE(exact);
    memcpy(exact, data, size);
    free(data);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

int main(int count, char **paths)
{
    for (int i = 1; i < count; i++) {
        printf("%s\n", paths[i]);
        fflush(stdout);
        run_file(paths[i]);
    }
    return 0;
}
