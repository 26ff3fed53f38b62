/* main.c - the program pawl. Everything it does is in surface/cli.
 * SPDX-License-Identifier: Apache-2.0 */
#include "surface/cli/cli.h"

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}
