#!/bin/sh
# An import of many rows: a definition whose map has a step for each of them, and its input. Only
# the rows that failed are run again by `pawl redrive`.
#   sh examples/import-rows.sh 10000 > rows.json
#   pawl run examples/import-rows.yaml --input @rows.json
awk -v n="${1:-10000}" 'BEGIN {
    printf "{\"rows\":["
    for (i = 0; i < n; i++)
        printf "%s{\"id\":%d,\"name\":\"row %d\"}", i ? "," : "", i, i
    print "]}"
}'
