#!/bin/sh
# Holds the pipe $1 as a single process that lets no polite signal end it.
trap '' TERM INT HUP
read -r _
exec 3>"$1"
echo >&3
exec tail -f /dev/null >/dev/null 2>&1
