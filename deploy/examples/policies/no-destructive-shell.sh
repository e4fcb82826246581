#!/bin/sh
# A policy as a program. The event comes as one JSON object on standard input.
# Exit code 0 without output is no opinion; exit code 2 refuses, and what stands
# on standard error is the reason that the agent reads.
#
# It looks for words in the whole event, which refuses a few harmless calls and
# is easy to read. An agent that wants to can find words that are not here: a
# policy of this kind stops mistakes, not intent.

event=$(cat)

refuse() {
	echo "$1; ask the person you work for" >&2
	exit 2
}

has() {
	printf '%s' "$event" | grep -Eq -e "$1"
}

has '(^|[^[:alnum:]_-])rm +-[[:alpha:]]*[rRf]' && refuse "rm with -r or -f deletes without asking"
has '(^|[^[:alnum:]_-])mkfs' && refuse "mkfs empties a disk"
has 'of=/dev/' && refuse "dd onto a device overwrites it"
exit 0
