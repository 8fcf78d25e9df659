#!/bin/sh
# Writes the metrics of the last apply to where node_exporter reads them (--collector.textfile.directory), in one step: it reads
# each file of the folder whose name ends in .prom. NAME keeps apart what several configurations write.
#
#   ./textfile.sh /var/lib/node_exporter NAME
set -eu
metrics=$(terraform output -raw metrics) # an error here leaves the file as it is
printf '%s\n' "$metrics" > "$1/flotilla-$2.prom.new"
mv "$1/flotilla-$2.prom.new" "$1/flotilla-$2.prom"
