/* files.h - private to the command line: files and streams that are read or written whole. */
#ifndef PAWL_SURFACE_CLI_FILES_H
#define PAWL_SURFACE_CLI_FILES_H

#include "base/buf.h"
#include "base/scope.h"

/* Can this file ("-": standard input) be read? If not, a message on stderr says so. */
bool file_is_readable(const char *path);

/* Where a word may be a file or a definition's name: it is the file, if there is one (not a
 * folder), or if it ends like one (.yaml, .yml, .json). */
bool word_is_code(const char *word); /* .py, .js, .mjs, .ts */
bool word_is_file(const char *word);

/* A file's text, NUL-terminated ("-": standard input). INVALID_REQUEST names it. */
pawl_status file_read(struct scope *scope, const char *path, str *out);

/* All that comes. False: with errno, or out->failed. */
bool read_to_end(int fd, struct buf *out);
/* False, with errno: it was not written whole. */
bool write_whole(int fd, str bytes);

#endif
