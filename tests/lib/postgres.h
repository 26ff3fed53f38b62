/* postgres.h - a private PostgreSQL for tests in C: one cluster for a test program, started when the
 * first test over it runs, and ended with the program; a fresh schema for each test. */
#ifndef PAWL_TESTS_LIB_POSTGRES_H
#define PAWL_TESTS_LIB_POSTGRES_H

#include <stdbool.h>
#include <stddef.h>

/* For test.c: starts it, once; false: there is no PostgreSQL here. */
bool test_postgres_start(void);
void test_postgres_stop(void);

/* The URL of a store of this test, in a schema that no other has. `name` tells several apart. */
#define TEST_POSTGRES_URL 200
void test_postgres_url(const char *name, char out[TEST_POSTGRES_URL]);

#endif
