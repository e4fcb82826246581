#!/bin/sh
# Holds the pipe $1, lets no polite signal end it, and has a child of the same kind.
trap '' TERM INT HUP
read -r _
exec 3>"$1"
tail -f /dev/null >/dev/null 2>&1 & # with its output elsewhere: tail ends with its reader
echo >&3
wait
