/* test.h - the whole test framework.
 *
 *   TEST(json, a_key_that_stands_twice_is_refused)
 *   {
 *       EXPECT(node_read_json(&t->scope, text, &node) == PAWL_INVALID_REQUEST);
 *   }
 *
 * Tests register themselves, each runs in a process of its own with a time limit, and
 * the first EXPECT that fails ends its test. They may stand in helpers as well, but
 * only in the thread that runs the test. */
#ifndef PAWL_TESTS_LIB_TEST_H
#define PAWL_TESTS_LIB_TEST_H

#include "base/scope.h"
#include <inttypes.h>

struct test {
    const char *suite, *name;
    void (*run)(struct test *t);
    struct test *next;
    const char *store;  /* of a test that exists over several stores; else NULL */
    struct scope scope; /* ready to use, on heap_libc; ends with the test */
};

#define TEST(suite_name, test_name) TEST_OVER(NULL, suite_name, test_name)

/* One of three, over "memory", "sqlite" and "postgres". script/test runs one of the first two each
 * day, and the third once in eight days. */
#define TEST_OVER(store_name, suite_name, test_name)                                               \
    static void suite_name##_##test_name(struct test *t);                                          \
    __attribute__((constructor)) static void suite_name##_##test_name##_register(void)             \
    {                                                                                              \
        static struct test test = {                                                                \
            #suite_name, #test_name, suite_name##_##test_name,                                     \
            NULL,        store_name, { { NULL, NULL, 0, 0, false }, { PAWL_OK, "" } }              \
        };                                                                                         \
        test_register(&test);                                                                      \
    }                                                                                              \
    static void suite_name##_##test_name(__attribute__((unused)) struct test *t)

#define EXPECT(condition)                                                                          \
    ((condition) ? (void)0 : test_fail(__FILE__, __LINE__, "expected %s", #condition))
#define EXPECT_EQ(a, b)        test_expect_eq(__FILE__, __LINE__, #a " == " #b, (int64_t)(a), (int64_t)(b))
#define EXPECT_STR(s, text)    test_expect_str(__FILE__, __LINE__, #s, (s), (text))
#define EXPECT_TEXT(s, text)   test_expect_str(__FILE__, __LINE__, #s, str_of(s), (text))
#define EXPECT_OK(status)      test_expect_ok(__FILE__, __LINE__, #status, (status))
#define EXPECT_HAS(text, part) test_expect_has(__FILE__, __LINE__, (text), (part))

/* script/test --all: every n-th fault, whole small scopes. From day to day a sample of them. */
bool test_is_long(void);

/* Was it built with the address or the thread sanitizer, by gcc or by clang? */
bool test_is_sanitized(void);

/* $PAWL_TEST_SEED, which script/run-tests sets to the number of the day; 0 without it. */
uint64_t test_seed(void);

/* For a loop over every n. It begins at test_first() and goes on by test_stride(): by `whole` in
 * --all, else by `daily`, and less often under the thread sanitizer, for which one thread that meets
 * a fault is nothing new. The first n depends on the test and on the seed: in `daily` days the loop
 * visits every n. */
uint64_t test_first(uint64_t daily, uint64_t whole);
uint64_t test_stride(uint64_t daily, uint64_t whole);

/* A new empty folder, in $TMPDIR or /tmp. When the test has ended, however it ended, it is removed
 * with all that is in it. */
#define TEST_FOLDER_SIZE 64
void test_folder(char out[TEST_FOLDER_SIZE]);

void test_register(struct test *test);
_Noreturn void test_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void test_expect_eq(const char *file, int line, const char *what, int64_t a, int64_t b);
void test_expect_str(const char *file, int line, const char *what, str found, const char *wanted);
void test_expect_ok(const char *file, int line, const char *what, pawl_status status);
void test_expect_has(const char *file, int line, const char *text, const char *part);

#endif
