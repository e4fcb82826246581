#!/bin/sh
# Holds the pipe $1, lets no polite signal end it, and has a child of the same kind.
trap '' TERM INT HUP
exec 3>"$1"
tail -f /dev/null &
echo >&3
wait
