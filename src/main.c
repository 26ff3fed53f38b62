/* main.c - the program pawl. Everything it does is in surface/cli.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pawl_main.h>

int main(int argc, char **argv)
{
    return pawl_main(argc, argv, NULL);
}
