#!/usr/bin/env bash
# Times every named version at the studies' shapes.
# usage: bench/versions.sh FOLDER [OPTION of kgen bench ...]
# Writes FOLDER/versions_ROWSxCOLS.json; a version that cannot hold a shape is a row with its reason.
set -euo pipefail
folder=${1:?usage: bench/versions.sh FOLDER [OPTION of kgen bench ...]}
shift
for shape in 1024x4096 1025x257 256x65536; do
    python3 -m kgen bench --rows "${shape%x*}" --cols "${shape#*x}" \
        --out "$folder/versions_$shape.json" "$@"
done
