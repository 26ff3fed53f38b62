#!/bin/sh
# A flow of N steps side by side (1,000, unless it is told otherwise) and one join that waits for all of them.
#   sh examples/fan-out.sh | pawl run -
#   sh examples/fan-out.sh 20 | pawl run - --test
n=${1:-1000}
echo "name: fan-out
steps:
  start: {name: begin, tool: log, args: {message: \"$n at once\"}, parallel: [$(seq -s ', ' -f 'w%.0f' "$n")]}"
for i in $(seq "$n"); do
    echo "  w$i: {tool: set, args: {number: $i}, join: all}"
done
echo "  all: {tool: set, args: {first: \"{{steps.w1.result.number}}\", last: \"{{steps.w$n.result.number}}\"}, done: true}"
