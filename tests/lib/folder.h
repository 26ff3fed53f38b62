/* folder.h - the folders of a test, for test.c: made by the process that runs it, removed by its
 * parent. test_folder() is in test.h. */
#ifndef PAWL_TESTS_LIB_FOLDER_H
#define PAWL_TESTS_LIB_FOLDER_H

void test_folders_begin(long pid);
void test_folders_end(long pid);

#endif
