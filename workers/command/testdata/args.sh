#!/bin/sh
for arg; do printf '%s|' "$arg" >&2; done
exit 2
